import { json, operation } from '#docs/operation.ts'
import { rerankAnswer, rerankBody } from './schema.ts'

export const rerankOperation = operation({
  tag: 'Models',
  summary: 'Put documents in the order in which they answer',
  description: `Reads the fields that the APIs of Cohere and Jina have in common, and ignores others. A field that
is null counts as not given.`,
  body: {
    content: json(rerankBody, {
      model: 'bge-reranker-v2-m3',
      query: 'How long is the notice period?',
      documents: ['The notice period is three months.', 'Rent is due on the first.'],
      top_n: 1,
    }),
  },
  answers: {
    200: {
      description: 'The documents by their places, the best first.',
      content: json(rerankAnswer, {
        id: 'rerank_7k2v9d4m1xq8p0rzsw5b3hngtc',
        object: 'rerank',
        model: 'bge-reranker-v2-m3',
        results: [{ index: 0, relevance_score: 0.9871 }],
        usage: { total_tokens: 34 },
        meta: { billed_units: { search_units: 1 } },
      }),
    },
  },
  errors: {
    rerank_bad_request: [
      'query must be a text that is not blank.',
      {
        code: 'reranker_not_configured',
        message: 'No reranker is configured; name a model.',
      },
    ],
    model_mode_mismatch: 'The model "llama-3.3-70b" has mode generate; mode rerank is required.',
    model_not_found: 'The model "bge-reranker" does not exist.',
    rate_limit_exceeded: 'The upstream answered 429.',
    upstream_overloaded: 'The upstream answered 503.',
    upstream_invalid_answer: 'The rerank upstream answered with two results of one document.',
    upstream_unreachable: 'The upstream could not be reached.',
    upstream_first_event_timeout: 'The upstream gave no answer within 300 s.',
  },
})
