import { AppError } from '#lib/errors.ts'
import { foldText } from '#lib/fold-text.ts'
import { newId } from '#lib/id.ts'
import type { RequestContext } from '#lib/request-context.ts'
import type { Collection } from '#retrieval/collections/collections.ts'
import type { Collections } from '#retrieval/collections/create-collections.ts'
import { isCollectionName } from '#retrieval/collections/schema.ts'
import type { NewStore } from './schema.ts'

/** Leaves space for a random suffix in the name. */
const stemCharsMax = 40

/** Creates a collection with a name derived from the title. */
export async function createStore(
  collections: Collections,
  context: RequestContext,
  { title, description, metadata, fileIds, chunking }: NewStore,
): Promise<Collection> {
  const caller = context.principal
  const params = {
    title,
    description,
    metadata,
    chunking,
    accessMode: 'files' as const,
    embeddingModel: null,
    folderId: null,
  }
  const store = await createNamed(title, (name) => collections.create(context, { ...params, name }))
  if (fileIds.length === 0) return store
  try {
    const files = fileIds.map((fileId) => ({ fileId, attributes: null }))
    await collections.members.add(caller, store.id, files, null)
  } catch (error) {
    await collections.remove(caller, store.id, { isForced: true })
    throw error
  }
  return collections.find(caller, store.id)
}

/** Titles may repeat; names are unique. */
async function createNamed(
  title: string | null,
  create: (name: string) => Promise<Collection>,
): Promise<Collection> {
  const stem = foldText(title ?? '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, stemCharsMax)
  const uniqueName = newId(stem === '' ? 'vs_' : `${stem}-`).slice(0, stemCharsMax + 8)
  if (!isCollectionName(stem)) return create(uniqueName)
  try {
    return await create(stem)
  } catch (error) {
    if (!(error instanceof AppError) || error.wireCode !== 'name_conflict') throw error
    return create(uniqueName)
  }
}
