/**
 * The only time limits of tests. They end what hangs; no test measures time. The slowest need a minute and
 * a half on an idle machine, and several times as much on one that runs other tests as well.
 */
export const testTimeoutMs = 600_000

/** After this time a helper says what it waits for. */
export const helperTimeoutMs = 540_000

/** How long a local model may take to load: other work of the machine decides. */
export const modelLoadMs = 600_000
