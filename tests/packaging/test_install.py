"""Advice to install: the packages are pyproject's, and each command works from where the user stands."""

import argparse
import io
import platform
import re
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from renderer import doctor
from renderer.paths import ROOT
from renderer.system import install


def test_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, packages in install.EXTRAS.items():
        listed = [re.split("[>=<]", package)[0] for package in project["optional-dependencies"][name]]
        assert sorted(listed) == sorted(packages), name


@pytest.mark.parametrize(
    ("prefix", "base", "has_pip", "is_managed", "wanted"),
    [
        ("/home/a/.venv", "/usr", True, True, "{python} -m pip install av"),
        ("/usr", "/usr", True, True, "{python} -m pip install --user --break-system-packages av"),
        ("/opt/python", "/opt/python", True, False, "{python} -m pip install av"),
        ("/home/a/.local/share/pipx/venvs/rayfold", "/usr", True, True, "pipx inject rayfold av"),
        ("/home/a/.local/share/uv/tools/rayfold", "/usr", False, True, "uv pip install --python {python} av"),
    ],
    ids=["venv", "system", "unmanaged", "pipx", "uv"],
)
def test_the_line_fits_the_environment(monkeypatch, tmp_path, prefix, base, has_pip, is_managed, wanted):
    if is_managed:
        (tmp_path / "EXTERNALLY-MANAGED").touch()
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "base_prefix", base)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(install, "find_spec", lambda name: has_pip or None)
    monkeypatch.setattr(sys, "executable", "/some where/python")
    assert install.pip_install("film") == wanted.format(python="'/some where/python'")
    monkeypatch.setattr(sys, "executable", str(Path.cwd() / "bin/python"))
    assert install.pip_install("film") == wanted.format(python="bin/python")


@pytest.mark.parametrize(
    ("text", "family", "command"),
    [
        ("ID=debian\n", "debian", "apt install --reinstall pocl-opencl-icd"),
        ('ID="ubuntu"\nID_LIKE=debian\n', "debian", "apt install --reinstall pocl-opencl-icd"),
        ("ID=linuxmint\nID_LIKE='ubuntu debian'\n", "debian", "apt install --reinstall pocl-opencl-icd"),
        ("ID=fedora\n", "fedora", "dnf install pocl"),
        ('ID="almalinux"\nID_LIKE="rhel centos fedora"\n', "fedora", "dnf install pocl"),
        ("ID=arch\n", "arch", "pacman -S pocl"),
        ("ID=other\n", "", "apt install --reinstall pocl-opencl-icd"),
        ("", "", "apt install --reinstall pocl-opencl-icd"),
    ],
)
def test_the_line_fits_the_distribution(monkeypatch, text, family, command):
    facts = dict(line.replace('"', "").replace("'", "").split("=") for line in text.splitlines())
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: facts)
    assert install.distribution() == family
    for is_root, before in ((True, ""), (False, "sudo ")):
        monkeypatch.setattr(install, "is_root", lambda is_root=is_root: is_root)
        assert install.system_install(install.OPENCL) == before + command
        known = "" if family else "Debian and Ubuntu: "
        assert install.system_advice(install.OPENCL) == known + before + command


def test_no_message_names_a_package_that_no_index_has():
    for path in (*ROOT.glob("renderer/**/*.py"), *ROOT.glob("assets/**/*.md"), ROOT / "README.md"):
        assert "'rayfold[" not in path.read_text(encoding="utf-8"), path


def test_fix_prints_the_commands_and_runs_them_on_a_word(monkeypatch, capsys, tmp_path):
    touch = f"{sys.executable} -c \"open('made', 'w')\""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())  # no terminal: nothing is asked
    assert doctor.run_fixes([touch], is_agreed=False) and not (tmp_path / "made").exists()
    assert touch in capsys.readouterr().err
    assert doctor.run_fixes([touch], is_agreed=True) and (tmp_path / "made").exists()
    assert not doctor.run_fixes([f"{sys.executable} -c 'exit(3)'", touch], is_agreed=True)
    assert "ended with exit code 3" in capsys.readouterr().err
    with pytest.raises(doctor.UnavailableError, match="no-such-program"):
        doctor.run_fixes(["no-such-program x"], is_agreed=True)
    assert doctor.run_fixes([], is_agreed=True) and "nothing is missing" in capsys.readouterr().err


def test_fixes_name_what_is_missing():
    good, none = {"ok": True}, {"ok": False}
    assert doctor.fixes([good], good, []) == []
    assert doctor.fixes([], none, ["film"]) == [install.system_install("gl", "opencl"), install.pip_install("film")]
    assert doctor.fixes([none], good, ["cuda", "farm"])[1] == install.pip_install("cuda", "farm")
    parser = argparse.ArgumentParser()
    doctor.add_arguments(parser)
    assert parser.parse_args(["--fix", "--yes"]).yes is True
