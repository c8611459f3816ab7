import { expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { endpoint, jsonBody } from '#api/endpoint.ts'
import { createTestApp, publicOnly } from '#test/support/endpoints.ts'
import { runPendingPromises } from '#test/support/pending-promises.ts'

test('the bodies of requests that arrive in one turn are read after all of them were received', async () => {
  const steps: string[] = []
  const body = Type.Object({ name: Type.String() })
  const app = createTestApp(
    [
      endpoint({
        method: 'POST',
        path: '/v1/steps',
        tag: 'steps',
        summary: 'Record the steps of a request',
        permission: 'public',
        responses: { 200: { description: 'The name.' } },
        before: () => void steps.push('received'),
        body: jsonBody(body, { example: { name: 'a' } }),
        handle: ({ body: { name } }) => void steps.push(name),
      }),
    ],
    publicOnly,
  )
  const send = (name: string) =>
    app.handle(
      new Request('http://localhost/v1/steps', { method: 'POST', body: JSON.stringify({ name }) }),
    )
  const first = send('a')
  await runPendingPromises()
  await Promise.all([first, send('b')])
  expect(steps).toEqual(['received', 'received', 'a', 'b'])
})
