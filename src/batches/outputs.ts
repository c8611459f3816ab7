import type { Config } from '#config/schema.ts'
import type { Files } from '#files/tree.ts'
import type { Storage } from '#storage/storage.ts'
import { unansweredLine } from './answers.ts'
import { type Batch, messagesPath } from './batches.ts'
import type { LineStore, OutputKind } from './line-store.ts'
import type { BatchStore } from './store.ts'

export type OutputDeps = {
  store: Pick<BatchStore, 'setOutput' | 'setResults'>
  lines: Pick<LineStore, 'output'>
  files: Pick<Files, 'create' | 'claimContent'>
  storage: Pick<Storage, 'put'>
  config: { files: Pick<Config['files'], 'bytesMax'> }
}

/** Answers in memory while an output is written; one answer may be longer. */
const answerCharsMax = 1_048_576

/**
 * Writes what a batch has answered: two files of its creator, or one content that is its result. An
 * output that exists already is not written again.
 */
export async function writeOutputs(
  deps: OutputDeps,
  batch: Batch,
  signal: AbortSignal,
): Promise<void> {
  if (batch.endpoint === messagesPath) return writeResults(deps, batch, signal)
  if (batch.outputFileId === null) await writeFile(deps, batch, { kind: 'completed', signal })
  if (batch.errorFileId === null) await writeFile(deps, batch, { kind: 'others', signal })
}

async function writeResults(deps: OutputDeps, batch: Batch, signal: AbortSignal): Promise<void> {
  if (batch.resultsSha256 !== null) return
  const { sha256 } = await put(deps, textOf(deps, batch, { kind: 'all', signal }))
  await deps.store.setResults(batch.id, sha256)
}

type Output = { readonly kind: OutputKind; readonly signal: AbortSignal }

async function writeFile(deps: OutputDeps, batch: Batch, output: Output): Promise<void> {
  const text = textOf(deps, batch, output)
  const first = await text.next()
  if (first.done === true) return
  const content = await put(deps, startingWith(first.value, text))
  const { id } = batch
  const isOutput = output.kind === 'completed'
  await deps.files.create(
    { userId: batch.ownerId, groups: batch.groups },
    {
      content,
      mimeType: 'application/jsonl',
      name: `${id}_${isOutput ? 'output' : 'error'}.jsonl`,
      folderId: null,
      attributes: {},
      purpose: 'batch_output',
      collections: [],
      lifetimeS: batch.outputLifetimeS,
      onConflict: 'allow',
    },
    (transaction, fileId) =>
      deps.store.setOutput(
        transaction,
        id,
        isOutput ? { outputFileId: fileId } : { errorFileId: fileId },
      ),
  )
}

function put({ storage, files, config }: OutputDeps, text: AsyncIterable<string>) {
  const source = encoded(text)
  return storage.put(source, { bytesMax: config.files.bytesMax, claim: files.claimContent })
}

async function* textOf(
  { lines }: Pick<OutputDeps, 'lines'>,
  batch: Batch,
  { kind, signal }: Output,
): AsyncGenerator<string, void, void> {
  for (let after = 0; ; ) {
    signal.throwIfAborted()
    const page = await lines.output(batch.id, { kind, after, charsMax: answerCharsMax })
    if (page.length === 0) return
    yield page
      .map(({ answer, customId }) => `${answer ?? unansweredLine(batch, customId)}\n`)
      .join('')
    after = page.at(-1)?.line ?? after
  }
}

async function* startingWith(first: string, rest: AsyncIterable<string>) {
  yield first
  yield* rest
}

async function* encoded(text: AsyncIterable<string>): AsyncGenerator<Uint8Array, void, void> {
  const encoder = new TextEncoder()
  for await (const part of text) yield encoder.encode(part)
}
