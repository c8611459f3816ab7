import { AppError } from '#lib/errors.ts'
import { foldText } from '#lib/fold-text.ts'
import { newId } from '#lib/id.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Collection, Collections } from '#retrieval/collections/collections.ts'
import { isCollectionName } from '#retrieval/collections/schema.ts'
import type { readNewStore } from './schema.ts'

/** Of a title that becomes a name; there must be room behind it. */
const stemCharsMax = 40

/** A collection by any title; its name is made of it. */
export async function createStore(
  collections: Collections,
  caller: RequestPrincipal,
  { title, description, metadata, fileIds, chunking }: ReturnType<typeof readNewStore>,
): Promise<Collection> {
  const wish = {
    title,
    description,
    metadata,
    chunking,
    accessMode: 'files' as const,
    embeddingModel: null,
    folderId: null,
  }
  const store = await createNamed(title, (name) => collections.create(caller, { ...wish, name }))
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

/** Two may have one title, and none may have the name of another. */
async function createNamed(
  title: string | null,
  create: (name: string) => Promise<Collection>,
): Promise<Collection> {
  const stem = foldText(title ?? '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, stemCharsMax)
  const numbered = newId(stem === '' ? 'vs_' : `${stem}-`).slice(0, stemCharsMax + 8)
  if (!isCollectionName(stem)) return create(numbered)
  try {
    return await create(stem)
  } catch (error) {
    if (!(error instanceof AppError) || error.wireCode !== 'name_conflict') throw error
    return create(numbered)
  }
}
