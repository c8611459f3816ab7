import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type ModelOrigin, startModelOrigin } from '#test/support/model-origin.ts'
import { type Bench, contentOf, openBench, remoteFile } from './transfer-fixture.ts'

const content = contentOf(200_000)
let bench: Bench
let store: ModelOrigin

beforeEach(async () => {
  bench = await openBench()
  store = await startModelOrigin()
})
afterEach(async () => {
  await bench.close()
  await store.stop()
})

const credentialsOf = ({ questions }: ModelOrigin) => [
  ...new Set(questions.map(({ headers }) => headers['authorization'])),
]

test('the hub token is not sent to redirect targets', async () => {
  const { origin: hub } = bench
  const location = store.put('/stored', content)
  const redirect = { kind: 'status', status: 302, headers: { location } } as const
  hub.alwaysMisbehave('/org/model/resolve/main/model.gguf', redirect)
  const file = remoteFile(`${hub.url}/org/model/resolve/main/model.gguf`, content)
  const settings = { hubUrl: `${hub.url}/`, hubToken: 'hf_secret' }
  const { file: done, lines } = await bench.transfer(file, { settings })
  expect(done?.isVerified).toBe(true)
  expect(credentialsOf(hub)).toEqual(['Bearer hf_secret'])
  expect(credentialsOf(store)).toEqual([undefined])
  expect(lines.join()).not.toContain('hf_secret')
})

test('the hub token is not sent to other hosts', async () => {
  const settings = { hubUrl: bench.origin.url, hubToken: 'hf_secret' }
  const file = remoteFile(store.put('/model.gguf', content), content)
  await bench.transfer(file, { settings })
  expect(credentialsOf(store)).toEqual([undefined])
})

test('only the hub may have a private address', async () => {
  const settings = { hubUrl: bench.origin.url, hosts: ['*'], privateHosts: false }
  const near = remoteFile(bench.origin.put('/model.gguf', content), content)
  expect((await bench.transfer(near, { settings })).failure).toBe('')
  const location = store.put('/model.gguf', content)
  bench.origin.alwaysMisbehave('/model.gguf', {
    kind: 'status',
    status: 302,
    headers: { location },
  })
  expect((await bench.transfer(near, { settings })).failure).toBe('host_not_allowed')
  expect(store.questions).toEqual([])
})
