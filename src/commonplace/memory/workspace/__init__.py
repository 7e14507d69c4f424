"""The folder `home/memories`: its layout, its accepted baseline, and replacing it in one step."""
