"""Fragment shaders as ShaderToy writes them: their tabs, channels, uniforms, passes and errors."""
