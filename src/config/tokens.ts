import { Type } from '@sinclair/typebox'
import { section, whole } from './keys.ts'

/** The keys of token counting. */
export const tokensKeys = {
  tokens: section('Counting input tokens.', {
    tokenizer: Type.Union([Type.Literal('o200k'), Type.Literal('none')], {
      description: 'Built-in tokenizer for models without one; uses 100 MB after the first count.',
      default: 'o200k',
    }),
    patienceMs: whole('How long a count may take before an estimate is returned.', {
      default: 1_000,
      minimum: 0,
    }),
    upstreamMs: whole('Timeout of the counter of an upstream, within patience_ms.', {
      default: 300,
      minimum: 1,
    }),
    upstreamAbsentMs: whole('How long a missing counter of an upstream is not tried again.', {
      default: 300_000,
      minimum: 0,
    }),
    textsMax: whole('Cached token counts.', { default: 20_000, minimum: 1 }),
    calibrateEveryMs: whole('How often counts are calibrated against reported usage.', {
      default: 1_000,
      minimum: 0,
    }),
    calibratedModelsMax: whole('Models with calibration data.', {
      default: 500,
      minimum: 1,
    }),
  }),
}
