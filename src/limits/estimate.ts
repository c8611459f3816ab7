/** Before a model has answered, in tokens. */
const firstMean = 500
/** The weight of the newest output. */
const newestShare = 0.1
/** Models with a mean of their own. */
const modelsMax = 1_000

export type OutputEstimate = ReturnType<typeof createOutputEstimate>

/**
 * The output tokens of a generation: the mean of its model, at most what it asks for. Clients ask for
 * the most that a model can write, so that alone would reserve far too much.
 */
export function createOutputEstimate() {
  const means = new Map<string, number>()
  return {
    of: (model: string, maxOutputTokens: number | null): number =>
      Math.min(
        Math.ceil(means.get(model) ?? firstMean),
        maxOutputTokens ?? Number.POSITIVE_INFINITY,
      ),
    learn(model: string, outputTokens: number): void {
      const mean = means.get(model)
      if (mean === undefined && means.size >= modelsMax) return
      const next = mean ?? firstMean
      means.set(model, next + (outputTokens - next) * newestShare)
    },
  }
}
