import { json, operation } from '#docs/operation.ts'
import { embeddingBody, embeddingList } from './schema.ts'

export const embedOperation = operation({
  tag: 'Models',
  summary: 'Turn texts into vectors',
  description: `One vector for each text, in order, all of one length. More texts than the upstream takes at once
are asked for in parts. A field that is null counts as not given, and other fields are ignored.`,
  body: { content: json(embeddingBody, { model: 'bge-m3', input: ['One text.', 'Another.'] }) },
  answers: {
    200: {
      description: 'The vectors.',
      content: json(embeddingList, {
        object: 'list',
        data: [
          { object: 'embedding', index: 0, embedding: [0.0231, -0.1187, 0.0452] },
          { object: 'embedding', index: 1, embedding: [-0.0077, 0.0904, 0.1313] },
        ],
        model: 'bge-m3',
        usage: { prompt_tokens: 9, total_tokens: 9 },
      }),
    },
  },
  errors: {
    invalid_request: 'input is required.',
    model_mode_mismatch: 'The model "llama-3.3-70b" has mode generate; mode embed is required.',
    model_not_found: 'The model "bge-m4" does not exist.',
    rate_limit_exceeded: 'The upstream answered 429.',
    upstream_overloaded: 'The upstream answered 503.',
    upstream_invalid_answer: 'The embedding upstream answered with vectors of several lengths.',
    upstream_unreachable: 'The upstream could not be reached.',
    upstream_first_event_timeout: 'The upstream gave no answer within 300 s.',
  },
})
