"""Starts beside imports, on a thread, the driver that a command will wait for."""

from renderer.gpu.nvidia import has_nvidia_driver


def open_ahead(device_id: str) -> None:
    """Begins what open_device() will wait for: NVIDIA's driver, where it may be meant, else the trial of OpenCL's."""
    index = device_id.removeprefix("cuda:") if device_id.startswith("cuda:") else "0" * (device_id == "auto")
    if index.isdecimal() and has_nvidia_driver():
        from renderer.gpu.cuda_ahead import start_driver

        start_driver(int(index))
    elif device_id in ("auto", "cpu") or device_id.startswith("opencl:"):
        from renderer.gpu.compilation import start_thread
        from renderer.gpu.icd import select_drivers

        start_thread(select_drivers)
