//! Overload control as pure code: rate limits, congestion levels, discards, outlier detection.
