import { builtInOwnerId } from '#agents/agents.ts'
import type { Agents } from '#agents/store.ts'
import type { Transaction } from '#db/client.ts'
import { AppError } from '#lib/errors.ts'
import {
  createBackgroundContext,
  type RequestContext,
  type RequestPrincipal,
} from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
import type { ConfigValues } from '#settings/schema.ts'
import type { Collections } from './collections/create-collections.ts'

/** The same in every deployment. */
export const serviceDeskAgentId = '00000000-0000-7000-8000-000000000001'

const collectionName = 'service-desk'
const instructions =
  'You are the service desk. Search the files before you answer, answer from the passages that you find, and cite them. Say so if they do not contain the answer.'

/**
 * The built-in agent that answers from `service_desk.document_ids`. Its documents are the members of a
 * collection of access mode `collection` that everyone may search: each is found while the
 * administrator who set it may share it. Both belong to no user, and exist while there are documents.
 */
export function createServiceDesk({
  agents,
  collections,
  firstModel,
}: {
  agents: Pick<Agents, 'putBuiltIn' | 'removeBuiltIn'>
  collections: Pick<Collections, 'create' | 'find' | 'publish'>
  /** The first model of the catalogue that generates text and that everyone may use. */
  firstModel(): string | undefined
}) {
  const owner: RequestPrincipal = { userId: builtInOwnerId, groups: [], isSystem: true }
  return {
    /** Creates the collection where it does not exist, before the transaction of a change. */
    async prepare(context: RequestContext): Promise<void> {
      const found = await collections.find(owner, collectionName).catch((error: unknown) => {
        if (error instanceof AppError && error.kind === 'not_found') return undefined
        throw error
      })
      if (found !== undefined) return
      const collection = {
        name: collectionName,
        title: null,
        description: 'The documents of the service desk.',
        metadata: {},
        accessMode: 'collection' as const,
        chunking: null,
        embeddingModel: null,
        folderId: null,
      }
      const background = createBackgroundContext(context.signal, owner)
      const creating = collections.create(background, collection)
      await creating.catch((error: unknown) => {
        // Another change was faster.
        if (!(error instanceof AppError) || error.wireCode !== 'name_conflict') throw error
      })
    },

    /**
     * Follows a change of the settings, in its transaction. Throws `permission_denied` for documents
     * that the principal may not share, and `unprocessable` without a model.
     */
    async apply(
      transaction: Transaction,
      principal: RequestPrincipal,
      { document_ids: documentIds, model: chosen }: ConfigValues['service_desk'],
    ): Promise<void> {
      const fileIds = documentIds ?? []
      const collectionId = await collections.publish(transaction, {
        owner,
        name: collectionName,
        sharedBy: principal,
        fileIds,
      })
      if (fileIds.length === 0 || collectionId === undefined) {
        return agents.removeBuiltIn(transaction, serviceDeskAgentId)
      }
      const model = chosen ?? firstModel()
      if (model === undefined) {
        throw refused('service_desk.model', 'There is no model that generates text.')
      }
      await agents.putBuiltIn(transaction, {
        id: serviceDeskAgentId,
        name: 'Service desk',
        description: 'Answers from the documents of the service desk.',
        model,
        instructions,
        collections: [collectionId],
      })
    },
  }
}
