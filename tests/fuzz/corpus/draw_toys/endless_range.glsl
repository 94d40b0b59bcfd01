// Buffer A
uniform float lambda = 1e30;  // -9999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999 to 1e38
void mainImage(out vec4 c, in vec2 p) {
    c = vec4(pow((texture(iChannel0, p / iResolution.xy).x < texture(iChannel0, p / iResolution.xy).x ? texture(iChannel0, p / iResolution.xy).x : texture(iChannel0, p / iResolution.xy).x), (texture(iChannel0, p / iResolution.xy).x + iTime)), (p.x * texelFetch(iChannel3, ivec2(65, 0), 0).x), iDate.w, sin(p.y));
    
}
// Buffer C
// iChannel2: picture.png mipmap repeat
uniform vec4 four = vec4(1);
void mainImage(out vec4 c, in vec2 p) {
    c = vec4((texelFetch(iChannel1, ivec2(p), 0).y + iChannelResolution[0].y), fract(iMouse.z), (float(iFrame) / 1.0), p.y);
    
}
// Image
// iChannel2: none
uniform float mouse = 2.0;
void mainImage(out vec4 c, in vec2 p) {
    c = vec4((fract(iResolution.x) + pow(iTime, iResolution.x)), sin(pow(-1.0, p.y)), pow((texelFetch(iChannel3, ivec2(65, 0), 0).x / iTime), sin(texelFetch(iChannel1, ivec2(p), 0).y)), (pow(1e38, iResolution.x) + mod(1.0, iChannelResolution[0].y)));
    
}