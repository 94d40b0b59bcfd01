"""README's lines on bare releases, as root and as a user: a system without Python becomes one that draws a picture.

Each release is laid out by debootstrap in a folder, which takes root, 2 GB and several minutes: `pytest -m slow`.
"""

import os
import re
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from renderer.formats.images import read_pixels
from renderer.paths import ROOT

DEBIAN, UBUNTU = "https://deb.debian.org/debian", "https://archive.ubuntu.com/ubuntu"
# Mirror, script of debootstrap, and components. A host of one family has no keys of the other: the mirror is https.
RELEASES = {
    "bookworm": (DEBIAN, "sid", "main", []),
    "trixie": (DEBIAN, "sid", "main", []),
    "noble": (UBUNTU, "gutsy", "main,universe", ["--no-check-gpg"]),
}
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
DRAW = "cd ~ && ~/rayfold/bin/rayfold export cornell -o box.png --size 64x48 --samples 4 --device cpu"
VARIABLES = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}


def lines_of_readme(wheel):
    """The two lines: what root installs, and what makes an environment with the wheel at the path `wheel`."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (packages,) = re.findall(r"^apt install ([^#\n]+)# Debian, Ubuntu; python3-venv", text, re.MULTILINE)
    (line,) = re.findall(r"^python3 -m venv [^#\n]+pip install \.(?= )", text, re.MULTILINE)
    return f"apt-get install -qq python3-venv {packages}", line[:-1] + wheel


def run(words, seconds, **options):
    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False, **options)
    assert done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


@pytest.fixture
def bare(request, tmp_path):
    """The folder of a bare release, with the processes, certificates and name servers of this machine."""
    for need in (shutil.which("debootstrap"), os.geteuid() == 0, shutil.disk_usage(tmp_path).free > 4 << 30):
        if not need:
            pytest.skip("laying out a release takes debootstrap, root and 4 GB")
    mirror, script, components, options = RELEASES[request.param]
    if subprocess.run(["curl", "-sfI", mirror + "/", "-m", "20"], capture_output=True).returncode:
        pytest.skip(f"{mirror} does not answer")
    folder = tmp_path / request.param
    script = f"/usr/share/debootstrap/scripts/{script}"
    layout = ["debootstrap", "--variant=minbase", f"--components={components}", *options]
    run([*layout, request.param, str(folder), mirror, script], 1500)
    with ExitStack() as mounted:
        for kind in ("proc", "sysfs"):
            place = folder / {"proc": "proc", "sysfs": "sys"}[kind]
            run(["mount", "-t", kind, kind, str(place)], 30)
            mounted.callback(subprocess.run, ["umount", "-l", str(place)], check=False)
        for file in (CERTIFICATES, Path("/etc/resolv.conf")):
            copy = folder / str(file)[1:]
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
        yield folder


@pytest.mark.slow
@pytest.mark.parametrize("bare", list(RELEASES), indirect=True)
def test_two_lines_of_the_readme_lead_to_a_picture(bare, installed):
    (wheel,) = installed.parent.glob("*.whl")
    shutil.copy(wheel, bare / "opt")
    packages, environment = lines_of_readme(f"/opt/{wheel.name}")
    variables = VARIABLES | {"PIP_CERT": str(CERTIFICATES), "PIP_DEFAULT_TIMEOUT": "180"}

    def inside(line, user="root", seconds=1200):
        home = "/root" if user == "root" else f"/home/{user}"
        words = ["chroot", f"--userspec={user}:{user}", str(bare), "/bin/sh", "-c", line]
        run(words, seconds, env=variables | {"HOME": home})

    inside("apt-get update -qq && useradd -m ada")
    inside(packages, seconds=2400)
    for user, home in (("root", "root"), ("ada", "home/ada")):
        inside(environment, user)
        inside(DRAW, user)
        picture = read_pixels(bare / home / "box.png")
        assert picture.shape[:2] == (48, 64) and picture.std() > 20
