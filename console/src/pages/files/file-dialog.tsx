import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Fault, Notice } from '../../ui/notice.tsx'
import { useQuery } from '../../ui/query.ts'
import { announceFault, perform } from '../../ui/toasts.tsx'
import { isAtLeast, type StoredFile } from './nodes.ts'
import { isInProgress, RetrievalState } from './retrieval-status.tsx'
import { download } from './transfer.ts'

const everyMs = 2_000
/** Collections to choose from. */
const collectionsMax = 100

/** Everything about a file, and what searching it needs. */
export function FileDialog({
  id,
  name,
  onClose,
}: {
  id: string
  name: string
  onClose: () => void
}) {
  const path = { file_id: id }
  const query = useQuery((signal) => call('GET /v1/files/{file_id}', { path, signal }), id, {
    everyMs: (file) => (isInProgress(file) ? everyMs : null),
  })
  const file = query.data
  return (
    <Dialog wide title={name} onClose={onClose}>
      {query.error !== undefined && <Fault error={query.error} onRetry={query.reload} />}
      {file !== undefined && (
        <>
          <Facts file={file} />
          <Retrieval file={file} onChange={query.reload} />
          <div class="row">
            <Button
              icon="download"
              onClick={() => void download(file.id, file.name).catch(announceFault)}
            >
              {text('files.download')}
            </Button>
          </div>
        </>
      )}
    </Dialog>
  )
}

function Facts({ file }: { file: StoredFile }) {
  const attributes = Object.entries(file.attributes)
  return (
    <dl class="facts">
      <dt>{text('files.size')}</dt>
      <dd>{format.bytes(file.bytes)}</dd>
      <dt>{text('files.type')}</dt>
      <dd>{file.mime_type}</dd>
      <dt>{text('files.owner')}</dt>
      <dd>{file.owner.name ?? file.owner.id}</dd>
      <dt>{text('files.created')}</dt>
      <dd>{format.time(file.created_at_iso)}</dd>
      <dt>{text('files.updated')}</dt>
      <dd>{format.time(file.updated_at)}</dd>
      {file.expires_at_iso !== null && (
        <>
          <dt>{text('files.expires')}</dt>
          <dd>{format.time(file.expires_at_iso)}</dd>
        </>
      )}
      {attributes.length > 0 && (
        <>
          <dt>{text('files.attributes')}</dt>
          <dd class="row">
            {attributes.map(([key, value]) => (
              <span key={key} class="tag">
                {key}: {String(value)}
              </span>
            ))}
          </dd>
        </>
      )}
      <dt>{text('files.id')}</dt>
      <dd class="mono">{file.id}</dd>
    </dl>
  )
}

/** The way into searches: collections, the state of the text, what it lacks. */
function Retrieval({ file, onChange }: { file: StoredFile; onChange: () => void }) {
  const { retrieval, retrieval_status: status } = file
  const path = { file_id: file.id }
  const reprocess = async () => {
    await perform(
      () => call('POST /v1/files/{file_id}/reprocess', { path }),
      text('files.reprocessing', { name: file.name }),
    )
    onChange()
  }
  const leave = async (collectionId: string, collection: string) => {
    await perform(
      () =>
        call('DELETE /v1/files/{file_id}/collections/{collection_id}', {
          path: { ...path, collection_id: collectionId },
        }),
      text('files.left', { collection }),
    )
    onChange()
  }
  return (
    <section class="stack tight">
      <h3>{text('files.retrieval')}</h3>
      <RetrievalState file={file} />
      {retrieval !== null && status === 'RAG Available' && (
        <p class="small muted">{text('files.passages', { count: retrieval.chunks })}</p>
      )}
      {(retrieval?.warnings ?? []).map(({ code, message }) => (
        <Notice key={code} kind="warn">
          {message}
        </Notice>
      ))}
      {status === 'Failed' && isAtLeast(file.my_role, 'editor') && (
        <div class="row">
          <Button size="small" icon="refresh" onClick={() => void reprocess()}>
            {text('files.reprocess')}
          </Button>
        </div>
      )}
      {(retrieval?.collections.length ?? 0) > 0 && (
        <ul class="lines" aria-label={text('files.collections')}>
          {retrieval?.collections.map((collection, at) => {
            const id = retrieval.collection_ids[at] ?? ''
            return (
              <li key={id}>
                <span class="grow">{collection}</span>
                <Button
                  kind="quiet"
                  size="small"
                  icon="trash"
                  label={text('files.leave', { collection })}
                  onClick={() => void leave(id, collection)}
                />
              </li>
            )
          })}
        </ul>
      )}
      <JoinCollection files={[file]} onJoined={onChange} />
    </section>
  )
}

/** Adds files to a collection, so that their text can be searched. */
export function JoinCollection({
  files,
  onJoined,
}: {
  files: readonly { readonly id: string }[]
  onJoined: () => void
}) {
  const [chosen, setChosen] = useState('')
  const query = useQuery(
    (signal) => call('GET /v1/collections', { query: { limit: collectionsMax }, signal }),
    'collections',
  )
  const options = (query.data?.data ?? []).filter(({ my_role: role }) => isAtLeast(role, 'editor'))
  const name = options.find(({ id }) => id === chosen)?.name ?? ''
  const join = async () => {
    await perform(
      async () => {
        for (const { id } of files) {
          await call('POST /v1/collections/{name}/files', {
            path: { name: chosen },
            body: { file_id: id },
          })
        }
      },
      text('files.joined', { collection: name }),
    )
    setChosen('')
    onJoined()
  }
  if (query.data !== undefined && options.length === 0) {
    return <p class="muted">{text('files.no_collections')}</p>
  }
  return (
    <div class="row join">
      <SelectField
        label={text('files.join')}
        value={chosen}
        onValue={setChosen}
        options={[
          { value: '', label: text('files.choose_collection') },
          ...options.map((one) => ({ value: one.id, label: one.name })),
        ]}
      />
      <Button disabled={chosen === ''} onClick={() => void join()}>
        {text('files.add')}
      </Button>
    </div>
  )
}
