"""One file for each module that decides something; the folders mirror the packages."""
