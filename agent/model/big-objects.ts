// Which contents of ConfigMaps and Secrets are too large to be kept in memory: one limit for those who read them and those
// who write them to volumes.

/** An object of this size (bytes) or more is not kept in memory. */
export const BIG_BYTES = 64 * 1024;
