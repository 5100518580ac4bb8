"""Hands the build over to pbr, which reads setup.cfg."""

import setuptools

setuptools.setup(setup_requires=['pbr>=6.0.0'], pbr=True)
