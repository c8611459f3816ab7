import { useState } from 'preact/hooks'
import { call, type RequestOf } from '../../api/call.ts'
import type { AuditEntry, User } from '../../api/generated/types.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { saveFile } from '../../ui/download.ts'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Empty } from '../../ui/notice.tsx'
import { Page } from '../../ui/page.tsx'
import { usePaged } from '../../ui/paged.ts'
import { useAction, useQuery } from '../../ui/query.ts'
import { actionsColumn } from '../../ui/row-actions.tsx'
import { type Column, Pager, Table } from '../../ui/table.tsx'
import { announceFault } from '../../ui/toasts.tsx'
import { Diff, nameIn, summaryOf } from './changes.tsx'

type Filter = NonNullable<RequestOf<'GET /v1/audit-log'>['query']>

/** First words of actions, as the API filters by them. */
const kinds = [
  'agent',
  'api_key',
  'branding',
  'collection',
  'config',
  'file',
  'folder',
  'group',
  'model',
  'model_download',
  'reindex',
  'service_account',
  'translation',
  'upstream',
  'user',
] as const
const dayMs = 86_400_000
const exportedMax = 5_000
const exportedPerPage = 100

export function AuditPage() {
  const [actor, setActor] = useState<{ id: string; name: string } | null>(null)
  const [action, setAction] = useState('')
  const [from, setFrom] = useState('')
  const [to, setTo] = useState('')
  const [shown, setShown] = useState<AuditEntry | null>(null)
  const [isBusy, run] = useAction()
  const filter: Filter = {
    ...(actor === null ? {} : { actor: actor.id }),
    ...(action === '' ? {} : { action }),
    ...(from === '' ? {} : { from: dayOf(from).toISOString() }),
    ...(to === '' ? {} : { to: new Date(dayOf(to).getTime() + dayMs).toISOString() }),
  }
  const query = usePaged<AuditEntry>(
    (page, signal) => call('GET /v1/audit-log', { query: { ...page, ...filter }, signal }),
    JSON.stringify(filter),
  )
  const columns: readonly Column<AuditEntry>[] = [
    {
      name: 'at',
      label: text('audit.when'),
      cell: ({ created_at: at }) => <span class="nowrap">{format.time(at)}</span>,
    },
    { name: 'who', label: text('audit.who'), cell: (entry) => actorName(entry) },
    { name: 'action', label: text('audit.action'), cell: (entry) => <code>{entry.action}</code> },
    {
      name: 'resource',
      label: text('audit.resource'),
      cell: ({ resource: { type, id }, changes }) => {
        const name = nameIn(changes)
        return (
          <div class="anywhere">
            {name ?? id} <span class="small muted">{type}</span>
            {name !== null && name !== id && <div class="small muted">{id}</div>}
          </div>
        )
      },
    },
    {
      name: 'changes',
      label: text('audit.changes'),
      cell: ({ changes }) => <span class="small muted anywhere">{summaryOf(changes)}</span>,
    },
    actionsColumn((entry) => [
      {
        label: text('audit.show_name', { action: entry.action, id: entry.resource.id }),
        word: text('audit.show'),
        onPress: () => setShown(entry),
      },
    ]),
  ]
  return (
    <Page
      title={text('audit.title')}
      about={text('audit.about')}
      actions={
        <Button
          icon="download"
          disabled={isBusy}
          onClick={() => void run(() => exportEntries(filter).catch(announceFault))}
        >
          {text('audit.export')}
        </Button>
      }
    >
      <div class="stack tight">
        <div class="row filters">
          <SelectField
            label={text('audit.action')}
            value={action}
            onValue={setAction}
            options={[
              { value: '', label: text('audit.any') },
              ...kinds.map((value) => ({ value, label: value })),
            ]}
          />
          <TextField type="date" label={text('audit.from')} value={from} onValue={setFrom} />
          <TextField type="date" label={text('audit.to')} value={to} onValue={setTo} />
          <Who actor={actor} onActor={setActor} />
        </div>
        <Table
          label={text('audit.title')}
          columns={columns}
          query={query}
          rows={query.rows}
          keyOf={({ id }) => id}
          empty={
            <Empty icon="audit" title={text('audit.none')}>
              {text('audit.none_hint')}
            </Empty>
          }
        />
        <Pager {...query.pager} />
      </div>
      {shown !== null && <Entry entry={shown} onClose={() => setShown(null)} />}
    </Page>
  )
}

/** Midnight of a day in the time zone of the browser. */
function dayOf(date: string): Date {
  return new Date(`${date}T00:00`)
}

function actorName({ actor }: Pick<AuditEntry, 'actor'>): string {
  return actor === null ? text('audit.system') : (actor.name ?? actor.id)
}

/** Chooses the user by a part of the name. */
function Who({
  actor,
  onActor,
}: {
  actor: { readonly id: string; readonly name: string } | null
  onActor: (actor: { id: string; name: string } | null) => void
}) {
  const [search, setSearch] = useState('')
  const searched = search.trim()
  const found = useQuery<readonly User[]>(
    async (signal) =>
      searched === ''
        ? []
        : (await call('GET /v1/users', { query: { q: searched, limit: 5 }, signal })).data,
    `users ${searched}`,
  )
  if (actor !== null) {
    return (
      <div class="field">
        <span class="label">{text('audit.who')}</span>
        <Button icon="cross" onClick={() => onActor(null)}>
          {actor.name}
        </Button>
      </div>
    )
  }
  return (
    <div class="field who">
      <TextField type="search" label={text('audit.who')} value={search} onValue={setSearch} />
      {found.data !== undefined && searched !== '' && (
        <div class="row">
          {found.data.map(({ id, name, subject }) => (
            <Button
              key={id}
              size="small"
              onClick={() => {
                onActor({ id, name: name ?? subject })
                setSearch('')
              }}
            >
              {name ?? subject}
            </Button>
          ))}
          {found.data.length === 0 && <span class="small muted">{text('users.none_found')}</span>}
        </div>
      )}
    </div>
  )
}

function Entry({ entry, onClose }: { entry: AuditEntry; onClose: () => void }) {
  const { actor, action, resource, changes, request_id: requestId } = entry
  return (
    <Dialog wide title={action} onClose={onClose}>
      <dl class="facts">
        <dt>{text('audit.when')}</dt>
        <dd>{format.time(entry.created_at)}</dd>
        <dt>{text('audit.who')}</dt>
        <dd>
          {actorName(entry)}
          {actor?.ip_address && ` · ${actor.ip_address}`}
          {actor?.api_key_id && (
            <div class="small muted">
              {text('audit.by_key')} <code>{actor.api_key_id}</code>
            </div>
          )}
        </dd>
        <dt>{text('audit.resource')}</dt>
        <dd>
          {resource.id} <span class="muted">{resource.type}</span>
        </dd>
        {requestId !== null && (
          <>
            <dt>{text('error.request')}</dt>
            <dd class="mono">{requestId}</dd>
          </>
        )}
      </dl>
      <Diff changes={changes} />
    </Dialog>
  )
}

/** The filtered entries as a file, one JSON object per line. */
async function exportEntries(filter: Filter): Promise<void> {
  const lines: string[] = []
  let after: string | null = null
  do {
    const query: Filter = {
      ...filter,
      limit: exportedPerPage,
      ...(after === null ? {} : { after }),
    }
    const page: { data: AuditEntry[]; has_more: boolean; last_id: string | null } = await call(
      'GET /v1/audit-log',
      { query },
    )
    lines.push(...page.data.map((entry) => JSON.stringify(entry)))
    after = page.has_more ? page.last_id : null
  } while (after !== null && lines.length < exportedMax)
  saveFile(new Blob([`${lines.join('\n')}\n`], { type: 'application/x-ndjson' }), 'audit-log.jsonl')
}
