"""The smallest noise (or the most steps, or the largest rate) that certainly meets a target."""

from dptally.calibration.search import calibrate as calibrate
