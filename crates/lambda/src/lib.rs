//! What the functions on AWS share: settings, logs, metrics, events in and answers out.
