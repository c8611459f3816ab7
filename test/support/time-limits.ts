/**
 * The only time limits of tests. They end what hangs; no test measures time, and the slowest need a
 * minute on a busy machine.
 */
export const testTimeoutMs = 300_000

/** After this time a helper says what it waits for. */
export const helperTimeoutMs = 240_000

/** How long a local model may take to load: other work of the machine decides. */
export const modelLoadMs = 600_000
