//! SOM
