import { afterEach, expect, test } from 'bun:test'
import type { RequestContext } from '#lib/request-context.ts'
import { createFileSearch } from '#retrieval/file-search/file-search.ts'
import { noFileSearch } from '#retrieval/file-search/request.ts'
import { calling, loopEvents, saying } from '#test/inference/tool-loop/looping.ts'
import { stopUpstreams, target, upstreamThat } from '#test/support/generations.ts'

afterEach(stopUpstreams)

test('a search runs in the context of the request, and a failed one is logged with its id', async () => {
  const upstream = await upstreamThat(
    { body: calling(['a', 'file_search', '{"queries":["x"]}']) },
    { body: saying('Nothing found.') },
  )
  const contexts: RequestContext[] = []
  const lines: object[] = []
  const fileSearch = createFileSearch({
    async search(context) {
      contexts.push(context)
      throw new Error('no index')
    },
    log: { error: (message, fields) => lines.push({ message, ...fields }) },
  })
  const tool = {
    collections: ['docs'],
    agentCollections: [],
    filters: [],
    resultsMax: null,
    scoreMin: null,
    rerank: null,
  }
  await loopEvents({
    targets: [target(upstream.baseUrl)],
    hosted: fileSearch.open({ ...noFileSearch, tool }, new Set()),
  })
  expect(contexts).toMatchObject([{ requestId: 'req_1', principal: { userId: 'user-1' } }])
  expect(lines).toMatchObject([
    { message: 'file search failed', request_id: 'req_1', user_id: 'user-1' },
  ])
})
