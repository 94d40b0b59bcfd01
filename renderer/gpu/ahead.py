"""Starts a device's driver on a thread while the command is still importing modules."""

from renderer.gpu.nvidia import has_nvidia_driver


def open_ahead(device_id: str) -> None:
    """Starts NVIDIA's driver if `device_id` may mean a CUDA device, else the trial of the OpenCL drivers (icd.py)."""
    index = device_id.removeprefix("cuda:") if device_id.startswith("cuda:") else "0" * (device_id == "auto")
    if index.isdecimal() and has_nvidia_driver():
        from renderer.gpu.cuda.ahead import start_driver

        start_driver(int(index))
    elif device_id in ("auto", "cpu") or device_id.startswith("opencl:"):
        from renderer.gpu.compilation import start_thread
        from renderer.gpu.opencl.icd import select_drivers

        start_thread(select_drivers)
