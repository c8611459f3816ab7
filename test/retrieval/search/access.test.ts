import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { createLocalHashEmbedder } from '#embedding/local-hash.ts'
import { createBackgroundContext } from '#lib/request-context.ts'
import { createChunkTables } from '#retrieval/index/tables.ts'
import { createSearch } from '#retrieval/search/create-search.ts'
import { searchTuning } from '#retrieval/search/hit-store.ts'
import type { Search, SearchMode } from '#retrieval/search/search.ts'
import { openTestDatabase, type TestDatabase } from '#test/support/database.ts'
import { createDice } from '#test/support/dice.ts'
import { makeRequestContext } from '#test/support/generation.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { storeCollection, storeIngested } from '#test/support/stored-collections.ts'
import { storeNodes, storeShares } from '#test/support/stored-files.ts'

/**
 * Compares search results with an oracle that evaluates each file alone, for random trees, shares,
 * collections and moves.
 */

type Node = {
  id: string
  ownerId: string
  parent: Node | null
  isFolder: boolean
  isTrashed: boolean
}
type Share = Parameters<typeof storeShares>[1][number]
type Collection = {
  id: string
  name: string
  ownerId: string
  isOpen: boolean
  files: Set<Node>
  /** The user who added the files. */
  addedBy: Caller
}
type Caller = { userId: string; groups: readonly string[] }

const dice = createDice(11)
const pick = <T>(items: readonly T[]): T => {
  const item = items[dice.upTo(items.length)]
  if (item === undefined) throw new Error('there is nothing to pick from')
  return item
}
const chance = (percent: number) => dice.upTo(100) < percent

const groups = ['legal', 'sales', 'a "quoted" {group}']
const callers: Caller[] = Array.from({ length: 6 }, () => ({
  userId: crypto.randomUUID(),
  groups: groups.filter(() => chance(40)),
}))
const nodes = plantTrees()
const files = nodes.filter(({ isFolder }) => !isFolder)
const collections: Collection[] = Array.from({ length: 5 }, (_, at) => ({
  id: crypto.randomUUID(),
  name: `collection-${at}`,
  ownerId: pick(callers).userId,
  addedBy: pick(callers),
  isOpen: chance(40),
  files: new Set(files.filter(() => chance(50))),
}))
let shares: Share[] = []
const disabled = new Set<string>()

let database: TestDatabase
/** By what is evaluated first. */
let searches: Record<'rights' | 'passages', Search>
beforeAll(async () => {
  database = await openTestDatabase()
  const embedder = createLocalHashEmbedder()
  const settings = { retrieval_k: 3, rerank_top_n: null, reranker_model: null }
  const deps = {
    database,
    log: quietLog,
    settings: { current: () => settings },
    embedders: { find: async () => embedder },
    rerankers: { find: () => Promise.reject(new Error('there is none')) },
  }
  searches = {
    rights: createSearch(deps),
    passages: createSearch({ ...deps, tuning: { ...searchTuning, rightsFirstFilesMax: 0 } }),
  }
  await store()
})
afterAll(() => database.close())

test.each([1, 2, 3, 4])('a search finds exactly what its caller may find: state %d', async () => {
  await change()
  let [visible, hidden] = [0, 0]
  for (const caller of callers) {
    for (const searched of [...collections.map((one) => [one]), collections.slice(0, 3)]) {
      const names = searched.map(({ name }) => name)
      const expected = expectedFor(caller, searched)
      for (const mode of ['hybrid', 'vector', 'keyword'] as const) {
        expect(await found(searches.rights, caller, names, mode)).toEqual(expected)
        expect(await found(searches.passages, caller, names, mode)).toEqual(expected)
      }
      if (expected === 'not_found') hidden += 1
      else visible += expected.length
    }
  }
  // The test needs both visible and hidden files.
  expect(visible).toBeGreaterThan(0)
  expect(hidden).toBeGreaterThan(0)
})

async function found(search: Search, caller: Caller, names: readonly string[], mode: SearchMode) {
  const request = { collections: names, queries: ['common words'], filters: [], mode }
  try {
    const context = createBackgroundContext(new AbortController().signal, caller)
    const limits = { topK: 50, scoreMin: null, rerank: null }
    const { results } = await search(context, { ...request, ...limits })
    return results.map(({ fileId, collection }) => `${fileId} in ${collection}`).toSorted()
  } catch (error) {
    return Object(error).kind
  }
}

function expectedFor(caller: Caller, searched: readonly Collection[]) {
  if (!searched.every((collection) => isSeen(collection, caller))) return 'not_found'
  return files
    .flatMap((file) => {
      const first = searched.find(
        (collection) =>
          collection.files.has(file) &&
          ((collection.isOpen && mayShare(file, collection.addedBy)) || isReadable(file, caller)),
      )
      return first === undefined ? [] : [`${file.id} in ${first.name}`]
    })
    .toSorted()
}

function isSeen({ id, ownerId }: Collection, caller: Caller): boolean {
  return ownerId === caller.userId || shares.some((share) => isOn(share, id, caller))
}

function isReadable(file: Node, caller: Caller, roleMin = 1): boolean {
  if (file.isTrashed) return false
  if (file.ownerId === caller.userId) return true
  for (let node: Node | null = file; node !== null; node = node.parent) {
    const { id } = node
    if (shares.some((share) => share.role >= roleMin && isOn(share, id, caller))) return true
  }
  return false
}

function mayShare(file: Node, sharer: Caller): boolean {
  if (file.ownerId === sharer.userId) return !file.isTrashed
  return !disabled.has(sharer.userId) && isReadable(file, sharer, 3)
}

function isOn(share: Share, resourceId: string, { userId, groups: own }: Caller): boolean {
  if (share.resourceId !== resourceId) return false
  if (share.principalType === 'everyone') return true
  return share.principalType === 'user'
    ? share.principalId === userId
    : own.includes(share.principalId)
}

function plantTrees(): Node[] {
  const planted: Node[] = []
  for (let at = 0; at < 80; at++) {
    const { userId: ownerId } = pick(callers)
    const folders = planted.filter((node) => node.isFolder && node.ownerId === ownerId)
    const parent = folders.length > 0 && chance(75) ? pick(folders) : null
    planted.push({
      id: Bun.randomUUIDv7(),
      ownerId,
      parent,
      isFolder: at % 2 === 0,
      isTrashed: false,
    })
  }
  return planted
}

async function store(): Promise<void> {
  const { drizzle } = database
  await storeNodes(
    database,
    nodes.map((node) => ({ ...node, parentId: node.parent?.id ?? null })),
  )
  const jobs = { add: async () => {}, process: () => ({ stop() {} }) }
  const tables = createChunkTables({ database, jobs, now: () => new Date() })
  const spec = {
    model: 'x',
    dims: 384,
    chunkTokensMax: 800,
    chunkOverlapTokens: 100,
    partTokensMax: null,
  }
  const index = await tables.provide(spec)
  const idsOf = (members: Iterable<Node>) => Array.from(members, ({ id }) => id)
  for (const collection of collections) {
    const fileIds = idsOf(collection.files)
    const addedBy = collection.addedBy.userId
    await storeCollection(database, { ...collection, addedBy, indexId: index.id, fileIds })
  }
  for (const { userId, groups: own } of callers) {
    await drizzle.execute(sql`
      insert into app_user (id, subject) values (${userId}::uuid, ${userId})`)
    for (const name of own) {
      await drizzle.execute(sql`
        insert into group_member (user_id, group_name, source)
        values (${userId}::uuid, ${name}, 'manual')`)
    }
  }
  await storeIngested(database, { indexId: index.id, fileIds: idsOf(files), chunksPerFile: 1 })
  for (const [at, { id }] of files.entries()) {
    const text = `common words of file ${at}`
    const embedder = createLocalHashEmbedder()
    const { vectors } = await embedder.embed([text], {
      purpose: 'passage',
      context: makeRequestContext(),
    })
    const [vector = new Float32Array(384)] = vectors
    await drizzle.transaction((transaction) =>
      tables.replace(transaction, index, id, [
        { ordinal: 0, text, page: null, start: 0, end: text.length, vector },
      ]),
    )
  }
}

/** Random moves, shares, access modes, disabled users and deletions. */
async function change(): Promise<void> {
  const { drizzle } = database
  disabled.clear()
  for (const { userId } of callers) {
    if (chance(20)) disabled.add(userId)
    await drizzle.execute(sql`
      update app_user set disabled_at = case when ${disabled.has(userId)} then now() end
      where id = ${userId}::uuid`)
  }
  for (const node of nodes) {
    const folders = nodes.filter(
      (folder) => folder.isFolder && folder.ownerId === node.ownerId && !isBelow(folder, node),
    )
    if (chance(30)) node.parent = folders.length > 0 && chance(75) ? pick(folders) : null
  }
  const thrown = new Set(nodes.filter(() => chance(5)))
  for (const node of nodes) {
    node.isTrashed = [...thrown].some((top) => isBelow(node, top))
    await drizzle.execute(sql`
      update node set parent_id = ${node.parent?.id ?? null}::uuid,
        trashed_at = case when ${node.isTrashed} then now() end
      where id = ${node.id}::uuid`)
  }
  for (const collection of collections) {
    collection.isOpen = chance(40)
    await drizzle.execute(sql`
      update collection set access_mode = ${collection.isOpen ? 'collection' : 'files'}
      where id = ${collection.id}::uuid`)
  }
  shares = [
    ...nodes.filter(() => chance(25)).map(({ id }) => shareOn('node', id)),
    ...collections.flatMap(({ id }) => [shareOn('collection', id), shareOn('collection', id)]),
  ]
  await drizzle.execute(sql`delete from share`)
  await storeShares(database, shares)
}

function isBelow(node: Node, top: Node): boolean {
  for (let at: Node | null = node; at !== null; at = at.parent) if (at === top) return true
  return false
}

function shareOn(resourceType: Share['resourceType'], resourceId: string): Share {
  const resource = { resourceType, resourceId, role: 1 + dice.upTo(3) }
  if (chance(10)) return { ...resource, principalType: 'everyone', principalId: '*' }
  if (chance(40)) return { ...resource, principalType: 'group', principalId: pick(groups) }
  return { ...resource, principalType: 'user', principalId: pick(callers).userId }
}
