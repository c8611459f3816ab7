/** What is shown as silence. */
export const quietDbfs = -60

/** The level of samples in decibels of full scale. */
export function levelOf(samples: Int16Array): number {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  const rms = Math.sqrt(sum / Math.max(1, samples.length)) / 32_768
  return Math.max(quietDbfs, 20 * Math.log10(Math.max(rms, 1e-6)))
}
