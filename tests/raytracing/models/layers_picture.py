"""A picture for tests that look at its layers alone."""

from renderer.pictures.raytrace import Picture


class LayersPicture(Picture):
    """Compiles no schedule, which takes 1 to 2 CPU-seconds; the kernels of the layers take half a second."""

    def _open_schedule(self, settings, rays):
        return None

    def _open_trial(self, key, rivals, tile):
        return None

    def _compile_ahead(self, settings, ray_count, geometry):
        return None
