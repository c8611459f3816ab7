import { Type } from '@sinclair/typebox'
import { operation } from '#docs/operation.ts'

const example = [
  '# HELP sluice_generations_total Generations that are over.',
  '# TYPE sluice_generations_total counter',
  'sluice_generations_total{upstream="local",model="small",outcome="completed",worker="4711"} 5120',
  '',
].join('\n')

export const metricsOperation = operation({
  tag: 'Operations',
  summary: 'Read figures for monitoring',
  description: [
    'In the text format of Prometheus. Each worker answers for itself and names itself in the label `worker`; where several share a port, any of them answers. Only what is of the database (`sluice_jobs`) is of all of them.',
    'Without `metrics.token` in the configuration it is open to callers on this machine alone; with it, to whoever sends the token as `Authorization: Bearer`.',
  ].join('\n\n'),
  answers: {
    200: {
      description: 'The figures.',
      content: { 'text/plain': { schema: Type.String(), example } },
    },
  },
  errors: {
    invalid_token: 'This is not the token for the figures.',
    permission_denied: 'The figures are for callers on this machine.',
  },
})
