"""The smallest noise (or the most steps, or the largest rate) that is guaranteed to meet the target."""

from dptally.calibration.search import calibrate as calibrate
