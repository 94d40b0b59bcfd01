"""Light fields of camera arrays: reading them, apertures, disparities at a few points."""
