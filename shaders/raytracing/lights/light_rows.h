// The layout of the buffer `lights`, in rows of float4. renderer/raytracing/lights/light_buffer.py writes it; the files
// of this folder and of volumes/ read it. Area lights are emissive triangles and spheres; non-area lights are suns,
// point lights and the environment. Positions and directions are in world space. ~ is the bitwise complement.
//  1. The light table, light_count rows. x: CDF of the selection probability up to and including this light, uint32
//     (2^32 - 1 is 1). y: light id: an index of `primitives`, INSTANCED_LIGHT + index of an emissive instanced
//     triangle, ~index of a non-area light, or LIGHT_TREE_ID. z and w are 0.
//  2. Emissive triangles of instances in world space, 3 rows each. Radius -1: the transform has a negative determinant,
//     so the edges are swapped.
//  3. With LIGHT_GROUPS, words that are read backwards from the end of this part: the light group of the background and
//     the environment, then the groups of the non-area lights in their order.
//  4. With LIGHT_PROFILES, VOLUMES, LIGHT_GROUPS or CAUSTICS one row of words, DIRECTORY: the first row of the volumes
//     or of the caustic balls, the number of these, the first row of the profiles, the number of point lights (with
//     VOLUMES, for equiangular.h). As launch parameters, these would cost other scenes 2 % on CPUs.
//  5. From row params.non_area_lights on, 3 rows for each non-area light:
//         - position or unit direction; w is the kind: LIGHT_POINT; LIGHT_ENVIRONMENT; LIGHT_PROFILE - index of its
//           profile, for a point light with a photometric profile; or for a sun 1 - cos(angular radius), 0 for a delta
//           direction
//         - radiance of a sun, irradiance of a delta sun, intensity of a point light, 0 for the environment; w:
//           selection probability, 1 for point lights of a tree
//         - for a point light its spot falloff: the intensity is scaled by clamp(w - dot(xyz, direction to the light),
//           0, 1)^2; for a sun, in x, the CDF of the suns' selection by shadow catchers (catch_shadows.h)
//  6. From params.environment, one row a pixel: radiance, top row = zenith, -z in the middle.
//  7. From params.env_cdf, words: the marginal CDF over rows, then each row's conditional CDF; then the guides of these
//     CDFs, two 16-bit entries a word (renderer/raytracing/lights/environment.py); then the marginal CDF for level
//     surfaces and its guide.
//  8. With LIGHT_TREE the nodes and keys of light_tree.h; with LIGHT_PROFILES, VOLUMES and CAUSTICS the rows of
//     light_profile.h, volumes.h and caustics.h.
#define LIGHT_POINT -1.0f
#define LIGHT_ENVIRONMENT -2.0f
#define LIGHT_PROFILE -3.0f
#define DIRECTORY lights[params.non_area_lights - 1]  // part 4: volumes, caustic balls, profiles
#if LIGHT_GROUPS
#define LIGHT_GROUP_WORD(k) ((GLOBAL const int *)&DIRECTORY)[-1 - (k)]
#define IN_GROUP(wanted, group) ((wanted) < 0 || (wanted) == (group))
#else
#define LIGHT_GROUP_WORD(k) 0
#define IN_GROUP(wanted, group) true
#endif
#define BACKGROUND_GROUP LIGHT_GROUP_WORD(0)
#define NON_AREA_GROUP(light) LIGHT_GROUP_WORD(1 + (light))
#define FIRST_VOLUME_ROW as_int(DIRECTORY.x)
#define VOLUME_COUNT as_int(DIRECTORY.y)
#define FIRST_PROFILE_ROW as_int(DIRECTORY.z)
#define INSTANCED_LIGHT (1 << 30)
#define LIGHT_TREE_ID (~(1 << 28))  // the light id of the light tree's entry in the table of part 1
#define INV_2_32 2.3283064365386963e-10f
