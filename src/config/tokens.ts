import { Type } from '@sinclair/typebox'
import { section, whole } from './keys.ts'

/** The keys about counting input tokens without a model. */
export const tokensKeys = {
  tokens: section('Counting input tokens before a model does.', {
    tokenizer: Type.Union([Type.Literal('o200k'), Type.Literal('none')], {
      description:
        'What counts for models without a tokenizer of their own; it takes 100 MB once it was asked.',
      default: 'o200k',
    }),
    patienceMs: whole('How long a count may take before an estimate has to do.', {
      default: 1_000,
      minimum: 0,
    }),
    upstreamMs: whole("How long an upstream's own counter may take of that.", {
      default: 300,
      minimum: 1,
    }),
    upstreamAbsentMs: whole('How long a counter that an upstream does not have is not asked.', {
      default: 300_000,
      minimum: 0,
    }),
    textsMax: whole('Texts whose counts are remembered.', { default: 20_000, minimum: 1 }),
    calibrateEveryMs: whole('How often a count is held against what an upstream reported.', {
      default: 1_000,
      minimum: 0,
    }),
    calibratedModelsMax: whole('Models of which it is remembered how far counts are off.', {
      default: 500,
      minimum: 1,
    }),
  }),
}
