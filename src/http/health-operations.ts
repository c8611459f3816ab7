import { Type } from '@sinclair/typebox'
import { json, operation } from '#docs/operation.ts'

const statusOf = (status: string) => Type.Object({ status: Type.Literal(status) })
const ok = { description: 'It is.', content: json(statusOf('ok'), { status: 'ok' }) }

const tag = 'Operations'

export const livenessOperation = operation({
  tag,
  summary: 'Tell whether the process runs',
  answers: { 200: ok },
})

export const readinessOperation = operation({
  tag,
  summary: 'Tell whether the process takes work',
  description:
    'No longer as soon as it was told to stop. A database that is away does not count: tokens and known keys work without it.',
  answers: {
    200: ok,
    503: {
      description: 'It is stopping; send requests elsewhere.',
      content: json(statusOf('draining'), { status: 'draining' }),
    },
  },
})
