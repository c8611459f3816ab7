import { useEffect, useRef, useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { Collection, Reindex } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { confirm } from '../../ui/confirm.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { Empty, Fault, Notice } from '../../ui/notice.tsx'
import { Progress } from '../../ui/progress.tsx'
import { useQuery } from '../../ui/query.ts'
import { announce, perform } from '../../ui/toasts.tsx'
import { useEmbeddingModels } from './collection-form.tsx'

const everyMs = 1_000
const shownMax = 20

type Action = 'pause' | 'resume' | 'cancel' | 'retry' | 'accept' | 'revert'

/** What can be done in each state. */
const actions: Readonly<Record<Reindex['status'], readonly Action[]>> = {
  queued: ['cancel'],
  running: ['pause', 'cancel'],
  paused: ['resume', 'cancel'],
  needs_attention: ['retry', 'accept', 'cancel'],
  verifying: ['cancel'],
  cancelling: [],
  reverting: [],
  completed: [],
  cancelled: [],
  reverted: [],
}

const levels: Readonly<Record<Reindex['status'], string>> = {
  queued: 'live',
  running: 'live',
  verifying: 'live',
  cancelling: 'live',
  reverting: 'live',
  paused: 'warn',
  needs_attention: 'bad',
  completed: 'good',
  cancelled: 'warn',
  reverted: 'warn',
}

const isActive = ({ status }: Reindex) => levels[status] === 'live'

/** Rebuilds the index of a collection with another model or another division into passages. */
export function ReindexTab({
  collection,
  onChange,
}: {
  collection: Collection
  onChange: () => void
}) {
  const [isStarting, setStarting] = useState(false)
  const query = useQuery(
    (signal) => call('GET /v1/embeddings/reindex', { query: { limit: shownMax }, signal }),
    'reindexes',
    { everyMs: ({ data }) => (data.some(isActive) ? everyMs : null) },
  )
  const rows = query.data?.data.filter(({ collection_ids: ids }) => ids.includes(collection.id))
  const active = rows?.filter(isActive).length ?? 0
  const before = useRef(active)
  useEffect(() => {
    // The end of a reindex changes the collection.
    if (active < before.current) onChange()
    before.current = active
  }, [active])
  const { index, chunking } = collection
  return (
    <div class="stack">
      <dl class="facts">
        <dt>{text('collections.model')}</dt>
        <dd>
          <code>{index.embedding_model}</code> ·{' '}
          {text('collections.dims', { count: format.number(index.dims) })}
        </dd>
        <dt>{text('collections.chunking')}</dt>
        <dd>
          {text('collections.chunking_of', {
            max: chunking.max_tokens,
            overlap: chunking.overlap_tokens,
          })}
        </dd>
      </dl>
      <div class="row">
        <Button icon="refresh" onClick={() => setStarting(true)}>
          {text('reindex.start')}
        </Button>
      </div>
      {query.error !== undefined && <Fault error={query.error} onRetry={query.reload} />}
      {rows?.length === 0 && (
        <div class="card">
          <Empty icon="refresh" title={text('reindex.none')}>
            {text('reindex.none_hint')}
          </Empty>
        </div>
      )}
      {rows !== undefined && rows.length > 0 && (
        <ul class="card">
          {rows.map((reindex) => (
            <ReindexRow
              key={reindex.id}
              reindex={reindex}
              onChange={() => {
                query.reload()
                onChange()
              }}
            />
          ))}
        </ul>
      )}
      {isStarting && (
        <StartDialog
          collection={collection}
          onStarted={() => {
            setStarting(false)
            query.reload()
            onChange()
          }}
          onClose={() => setStarting(false)}
        />
      )}
    </div>
  )
}

function ReindexRow({ reindex, onChange }: { reindex: Reindex; onChange: () => void }) {
  const { id, status, source, target, completed, failed, skipped, total } = reindex
  const path = { reindex_id: id }
  const canRevert =
    status === 'completed' &&
    reindex.revertible_until !== null &&
    new Date(reindex.revertible_until).getTime() > Date.now()
  const act = async (action: Action) => {
    if (action === 'cancel' || action === 'revert') {
      const isSure = await confirm({
        title: text(`reindex.${action}_title`),
        consequence: text(`reindex.${action}_hint`),
        action: text(`reindex.${action}`),
        isDangerous: true,
      })
      if (!isSure) return
    }
    const operation = `POST /v1/embeddings/reindex/{reindex_id}/${action}` as const
    await perform(() => call(operation, { path }), text(`reindex.done.${action}`))
    onChange()
  }
  return (
    <li class="download">
      <div class="row between">
        <div>
          <code>{source.model}</code> → <code>{target.model}</code>
          <div class="small muted">
            {text('collections.chunking_of', {
              max: target.chunking.max_tokens,
              overlap: target.chunking.overlap_tokens,
            })}{' '}
            · {format.time(reindex.created_at)}
          </div>
        </div>
        <div class="row">
          <span class={`status ${levels[status]}`}>{text(`reindex.status.${status}`)}</span>
          {[...actions[status], ...(canRevert ? (['revert'] as const) : [])].map((action) => (
            <Button key={action} size="small" kind="quiet" onClick={() => void act(action)}>
              {text(`reindex.${action}`)}
            </Button>
          ))}
        </div>
      </div>
      <Progress label={text('reindex.progress')} value={completed + failed + skipped} max={total} />
      <p class="small muted">{progressText(reindex)}</p>
      {reindex.last_error !== null && <Notice kind="warn">{reindex.last_error}</Notice>}
      {failed > 0 && <Failures reindexId={id} />}
    </li>
  )
}

function progressText({ completed, failed, skipped, total, ...reindex }: Reindex): string {
  const { rate_per_s: rate, eta_seconds: eta } = reindex
  const parts = [
    text('reindex.files', { done: format.number(completed), total: format.number(total) }),
  ]
  if (failed > 0) parts.push(text('reindex.failed', { count: format.number(failed) }))
  if (skipped > 0) parts.push(text('reindex.skipped', { count: format.number(skipped) }))
  if (rate !== null && isActive({ ...reindex, completed, failed, skipped, total })) {
    parts.push(text('reindex.rate', { rate: format.number(rate, { maximumFractionDigits: 1 }) }))
  }
  if (eta !== null) parts.push(text('installer.eta', { minutes: Math.ceil(eta / 60) }))
  return parts.join(' · ')
}

/** Files that the new index could not take, with the reason of each. */
function Failures({ reindexId }: { reindexId: string }) {
  const query = useQuery(
    (signal) =>
      call('GET /v1/embeddings/reindex/{reindex_id}/failures', {
        path: { reindex_id: reindexId },
        signal,
      }),
    `failures ${reindexId}`,
  )
  return (
    <ul class="lines small">
      {(query.data?.data ?? []).map(({ file_id: fileId, filename, message }) => (
        <li key={fileId}>
          <strong class="anywhere">{filename}</strong>
          <span class="muted">{message}</span>
        </li>
      ))}
    </ul>
  )
}

function StartDialog({
  collection,
  onStarted,
  onClose,
}: {
  collection: Collection
  onStarted: () => void
  onClose: () => void
}) {
  const { index, chunking } = collection
  const [model, setModel] = useState(index.embedding_model)
  const [maxTokens, setMaxTokens] = useState(String(chunking.max_tokens))
  const [overlap, setOverlap] = useState(String(chunking.overlap_tokens))
  const models = useEmbeddingModels()
  const [estimate, setEstimate] = useState<string | null>(null)
  const send = (isDryRun: boolean) =>
    call('POST /v1/embeddings/reindex', {
      body: {
        embedding_model: model,
        chunking: { max_tokens: Number(maxTokens), overlap_tokens: Number(overlap) },
        collections: [collection.id],
        ...(isDryRun ? { dry_run: true } : {}),
      },
    })
  const submit = async () => {
    if (estimate === null) {
      const answer = await send(true)
      if (!('est_tokens' in answer)) return onStarted()
      setEstimate(
        text('reindex.estimate', {
          files: format.number(answer.total),
          tokens: format.compact(answer.est_tokens),
          time: format.ms(answer.est_seconds * 1000),
        }),
      )
      return
    }
    await send(false)
    announce(text('reindex.started'))
    onStarted()
  }
  const change = (set: (value: string) => void) => (value: string) => {
    set(value)
    setEstimate(null)
  }
  const options = models.some(({ value }) => value === model)
    ? models
    : [{ value: model, label: model }, ...models]
  return (
    <FormDialog
      title={text('reindex.title', { name: collection.name })}
      submit={text(estimate === null ? 'reindex.estimate_first' : 'reindex.start')}
      canSubmit={maxTokens !== '' && overlap !== ''}
      onSubmit={submit}
      onClose={onClose}
    >
      <p class="muted">{text('reindex.hint')}</p>
      <SelectField
        label={text('collections.model')}
        value={model}
        onValue={change(setModel)}
        options={options}
      />
      <div class="pair">
        <TextField
          type="number"
          min={1}
          label={text('collections.max_tokens')}
          value={maxTokens}
          onValue={change(setMaxTokens)}
        />
        <TextField
          type="number"
          min={0}
          label={text('collections.overlap')}
          value={overlap}
          onValue={change(setOverlap)}
        />
      </div>
      {estimate !== null && <Notice>{estimate}</Notice>}
    </FormDialog>
  )
}
