import { createLru } from '#lib/lru.ts'
import { type ClassTokens, noTokens } from './content-class.ts'

/**
 * Learns, from what upstreams report, by how much a way of counting is off: a factor for each model
 * and class of content. What is not text (images, files) is no part of it.
 */
export type Calibration = {
  /** The tokens by what is known of this model. */
  correct(model: string, counted: ClassTokens): number
  /** `reportedTokens`: what the model really read for what was counted. */
  learn(model: string, counted: ClassTokens, reportedTokens: number): void
}

const factorMin = 0.8
const factorMax = 1.6
/** How much of the last error is put right at once; the older a report, the less it weighs. */
const learningRate = 0.25
/** What is further off was not a report about the same thing. */
const plausibleRatioMin = 0.33
const plausibleRatioMax = 3
/** In a short request everything hangs on what the template adds. */
const reportedTokensMin = 32

export function createCalibration({ modelsMax }: { modelsMax: number }): Calibration {
  const models = createLru<string, ClassTokens>(modelsMax)
  const correct = (model: string, counted: ClassTokens) =>
    weigh(models.get(model) ?? untouched, counted)

  return {
    correct,
    learn(model, counted, reportedTokens) {
      const ratio = reportedTokens / weigh(untouched, counted)
      if (reportedTokens < reportedTokensMin) return
      if (!(ratio >= plausibleRatioMin && ratio <= plausibleRatioMax)) return
      const error = reportedTokens - correct(model, counted)
      const known = models.get(model) ?? untouched
      models.set(model, moved(known, counted, error * learningRate))
    },
  }
}

const untouched: Readonly<ClassTokens> = { prose: 1, code: 1, script: 1, template: 1 }
const classes = ['prose', 'code', 'script', 'template'] as const

function weigh(factors: ClassTokens, counted: ClassTokens): number {
  return classes.reduce((tokens, name) => tokens + factors[name] * counted[name], 0)
}

/**
 * The factors after an error was shared out among the classes by their parts in the request
 * (normalised least mean squares): with one class alone this is an exponential mean of the ratios.
 */
function moved(factors: ClassTokens, counted: ClassTokens, error: number): ClassTokens {
  const square = classes.reduce((sum, name) => sum + counted[name] ** 2, 0)
  const next = noTokens()
  for (const name of classes) {
    const factor = factors[name] + (error * counted[name]) / square
    next[name] = Math.min(factorMax, Math.max(factorMin, factor))
  }
  return next
}
