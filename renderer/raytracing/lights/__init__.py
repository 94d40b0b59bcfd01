"""Light sources of the ray tracer: emitters, environments, light sampling, and path guiding by photons."""
