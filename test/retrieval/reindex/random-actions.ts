import type { Embedder } from '#embedding/embedder.ts'
import { AppError } from '#lib/errors.ts'
import type { Reindex } from '#retrieval/reindex/progress.ts'
import { createDice } from '#test/support/dice.ts'
import { createOracle, type Oracle, textOf } from './oracle.ts'
import { ann, type ReindexHarness, type WorkerProcess } from './reindex-harness.ts'

/** Random actions on two collections, reproducible by seed except for timing. */
export type RandomActions = {
  readonly oracle: Oracle
  readonly reindexIds: readonly string[]
  /** The number of actions by name. */
  readonly done: Readonly<Record<string, number>>
  step(): Promise<void>
}

export const collectionNames = ['docs', 'more'] as const

const filesMax = 30
const models = ['small', 'large', 'local-hash'] as const
const modes = ['hybrid', 'vector', 'keyword'] as const
const actions = ['pause', 'resume', 'resume', 'retry', 'accept', 'cancel', 'revert'] as const
const pauseMaxMs = 40
/** The latency of a model, and the frequency of its failures. */
const embedMaxMs = 60
const failsOnceIn = 40

export function createRandomActions(harness: ReindexHarness, seed: number): RandomActions {
  const dice = createDice(seed)
  const oracle = createOracle(harness)
  const reindexIds: string[] = []
  const done: Record<string, number> = {}
  const processes: WorkerProcess[] = []
  for (const [name, embedder] of harness.embedders) {
    harness.embedders.set(name, unreliable(embedder, createDice(seed + harness.embedders.size)))
  }
  const pick = <T>(items: readonly T[]): T | undefined => items[dice.upTo(items.length)]
  const live = () => oracle.files.filter(({ isLive }) => isLive)

  async function upload() {
    if (live().length >= filesMax) return remove()
    const number = oracle.files.length
    const into = dice.upTo(3) === 0 ? [...collectionNames] : [pick(collectionNames) ?? 'docs']
    const text = textOf(number, 0)
    const id = await harness.upload(`file${number}.txt`, text, into)
    const collections = new Set<string>(into)
    oracle.added({ id, texts: [text], collections, isLive: true, reached: new Map() })
  }
  async function replace() {
    const file = pick(live())
    if (file === undefined) return
    const text = textOf(oracle.files.indexOf(file), file.texts.length)
    await harness.replace(file.id, text)
    file.texts.push(text)
  }
  async function remove() {
    const file = pick(live())
    if (file === undefined) return
    await harness.files.deleteFile(ann, { id: file.id, ifVersion: null })
    file.isLive = false
  }
  async function trashAndRestore() {
    const file = pick(live())
    if (file === undefined) return
    const node = { kind: 'file', id: file.id } as const
    await harness.files.remove(ann, node, { isRecursive: false, ifVersion: null })
    file.isLive = false
    for (const name of collectionNames) await oracle.check(name, 'hybrid')
    await harness.files.restore(ann, node, { onConflict: 'fail' })
    file.isLive = true
  }
  async function changeMembership() {
    const file = pick(live())
    const name = pick(collectionNames) ?? 'docs'
    if (file === undefined) return
    if (file.collections.delete(name)) {
      await harness.collections.members.remove(ann, name, file.id)
      file.reached.delete(name)
      return
    }
    const member = { fileId: file.id, attributes: null }
    await harness.collections.members.add(ann, name, [member], null)
    file.collections.add(name)
  }
  async function startReindex() {
    const named = dice.upTo(3) === 0 ? [pick(collectionNames) ?? 'docs'] : undefined
    const id = await refusable(() => harness.startReindex(pick(models) ?? 'small', named))
    if (id !== undefined) reindexIds.push(id)
  }
  async function act() {
    const id = pick(reindexIds.slice(-2))
    const action = pick(actions)
    if (id === undefined || action === undefined) return
    if ((await refusable(() => harness.act(id, action))) === undefined) return
    done[action] = (done[action] ?? 0) + 1
  }
  async function crash() {
    if (processes.length < 2) processes.push(await harness.start())
    else processes.splice(dice.upTo(2), 1)[0]?.crash()
  }
  const operations = {
    upload,
    replace,
    remove,
    trashAndRestore,
    changeMembership,
    startReindex,
    act,
    crash,
  }
  const weights: Record<keyof typeof operations, number> = {
    upload: 6,
    replace: 3,
    remove: 1,
    trashAndRestore: 1,
    changeMembership: 2,
    startReindex: 3,
    act: 4,
    crash: 1,
  }
  const weightedNames = (Object.keys(operations) as (keyof typeof operations)[]).flatMap((name) =>
    Array.from({ length: weights[name] }, () => name),
  )

  return {
    oracle,
    reindexIds,
    done,
    async step() {
      if (processes.length === 0) processes.push(await harness.start())
      const name = pick(weightedNames) ?? 'upload'
      await operations[name]()
      done[name] = (done[name] ?? 0) + 1
      for (const collection of collectionNames) {
        await oracle.check(collection, pick(modes) ?? 'hybrid')
      }
      await Bun.sleep(dice.upTo(pauseMaxMs))
    },
  }
}

/** Adds latency and occasional failures. */
function unreliable({ model, embed }: Embedder, dice: ReturnType<typeof createDice>): Embedder {
  return {
    model,
    async embed(texts, options) {
      if (options.purpose === 'passage') {
        await Bun.sleep(dice.upTo(embedMaxMs))
        if (dice.upTo(failsOnceIn) === 0) {
          throw new AppError('upstream_overloaded', 'The model has too much to do.')
        }
      }
      return embed(texts, options)
    },
  }
}

/** Undefined for actions that the present status does not allow. */
async function refusable<T>(deed: () => Promise<T>): Promise<T | undefined> {
  try {
    return await deed()
  } catch (error) {
    const isRule = error instanceof AppError && error.status < 500
    const isTrouble = error instanceof AppError && error.wireCode === 'embedding_probe_failed'
    if (isRule || isTrouble) return undefined
    throw error
  }
}

export function sumOf({ counters }: Reindex): number {
  return counters.completed + counters.failed + counters.skipped
}
