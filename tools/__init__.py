"""Scripts for the development and evaluation of Placement; the package does not install them."""
