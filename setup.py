"""What pyproject.toml cannot say of the build: the assets, which lie beside the package, go into it, and the
licence, whose form in that file no setuptools before 77 and none after 2026 share."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PICTURES = "screenshots", "*.svg"  # of documents alone


class WithAssets(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:  # a checkout has them beside the package
            inside = Path(self.build_lib) / "omnidemo" / "assets"
            shutil.rmtree(inside, ignore_errors=True)
            shutil.copytree("assets", inside, ignore=shutil.ignore_patterns(*PICTURES))


setup(license="Apache-2.0", cmdclass={"build_py": WithAssets})
