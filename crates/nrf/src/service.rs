//! Wires the function together: listeners, workers, the control thread, and the way of a request.
