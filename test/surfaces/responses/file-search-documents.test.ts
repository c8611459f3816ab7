import { afterAll, beforeAll, expect, test } from 'bun:test'
import { makeDocx, makePdf } from '#test/support/documents.ts'
import { ann, fillCollection } from '#test/support/fill-collection.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'

/** Real documents, from their upload to a response that cites them. */

let gateway: Gateway
let fileIds: Readonly<Record<string, string>>
beforeAll(async () => {
  gateway = await startGateway()
  const filled = await fillCollection(gateway, ann, {
    name: 'handbook',
    files: {
      'leave.pdf': makePdf([
        ['Working hours are from nine to five.'],
        ['Holiday may be carried over until March.'],
      ]),
      'travel.docx': makeDocx(['# Travel', 'Trains are booked by the travel desk.']),
    },
  })
  fileIds = filled.fileIds
})
afterAll(() => gateway.stop())

test.each([
  [
    'leave.pdf',
    'Until when may holiday be carried over?',
    'Holiday may be carried over until March.',
  ],
  ['travel.docx', 'Who books trains?', 'Trains are booked by the travel desk.'],
])('output from %s', async (filename, input, quoted) => {
  const client = await gateway.openai()
  const response = await client.responses.create({
    model: 'demo-fast',
    input,
    tools: [{ type: 'file_search', vector_store_ids: ['handbook'] }],
  })
  expect(response.output_text).toContain(quoted)
  const message = response.output.at(-1)
  expect(message).toMatchObject({
    content: [{ annotations: [{ type: 'file_citation', file_id: fileIds[filename], filename }] }],
  })
})

test('a passage on a page has its page number', async () => {
  const client = await gateway.openai()
  const response = await client.responses.create({
    model: 'demo-fast',
    input: 'Until when may holiday be carried over?',
    tools: [{ type: 'file_search', vector_store_ids: ['handbook'], max_num_results: 1 }],
    include: ['file_search_call.results'],
  })
  expect(response.output_text).toStartWith('It says in leave.pdf, page ')
  expect(response.output[0]).toMatchObject({ results: [{ page: expect.any(Number) }] })
})
