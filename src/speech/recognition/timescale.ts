/** Samples of one rate in whole milliseconds, and back; both rounded down. */
export type Timescale = {
  readonly sampleRateHz: number
  toMs(samples: number): number
  toSamples(ms: number): number
}

export function createTimescale(sampleRateHz: number): Timescale {
  return {
    sampleRateHz,
    toMs: (samples) => Math.floor((samples * 1000) / sampleRateHz),
    toSamples: (ms) => Math.floor((ms * sampleRateHz) / 1000),
  }
}
