import { Type } from '@sinclair/typebox'
import { json, operation } from '#docs/operation.ts'

export const probeOperation = operation({
  tag: 'Operations',
  summary: 'Tell that something is here',
  description: 'For clients that look before they ask.',
  answers: {
    200: {
      description: 'There is.',
      content: json(Type.Object({ status: Type.Literal('ok') }), { status: 'ok' }),
    },
  },
})
