import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { Collection } from '../../api/generated/types.ts'
import { href, navigate, place } from '../../shell/router.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Empty } from '../../ui/notice.tsx'
import { Page } from '../../ui/page.tsx'
import { usePaged } from '../../ui/paged.ts'
import { type Column, Pager, Table } from '../../ui/table.tsx'
import { CollectionForm } from './collection-form.tsx'
import { CollectionView } from './collection-view.tsx'

export function CollectionsPage() {
  const id = place.value.query.get('id')
  return id === null ? <CollectionList /> : <CollectionView key={id} id={id} />
}

function CollectionList() {
  const [isCreating, setCreating] = useState(false)
  const query = usePaged<Collection>(
    (page, signal) => call('GET /v1/collections', { query: page, signal }),
    'collections',
  )
  const create = (
    <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
      {text('collections.create')}
    </Button>
  )
  return (
    <Page title={text('collections.title')} about={text('collections.about')} actions={create}>
      <div>
        <Table
          label={text('collections.title')}
          columns={columns()}
          query={query}
          rows={query.rows}
          keyOf={({ id }) => id}
          empty={
            <Empty icon="search" title={text('collections.none')}>
              {text('collections.none_hint')}
            </Empty>
          }
        />
        <Pager {...query.pager} />
      </div>
      {isCreating && (
        <CollectionForm
          collection={null}
          onSaved={({ id }) => navigate(`/collections?id=${id}`)}
          onClose={() => setCreating(false)}
        />
      )}
    </Page>
  )
}

const columns = (): readonly Column<Collection>[] => [
  {
    name: 'name',
    label: text('collections.name'),
    cell: ({ id, name, description }) => (
      <div class="anywhere">
        <a href={href(`/collections?id=${id}`)}>{name}</a>
        {description !== null && <div class="small muted">{description}</div>}
      </div>
    ),
  },
  {
    name: 'files',
    label: text('files.title'),
    cell: ({ file_counts: counts }) => <Counts counts={counts} />,
  },
  {
    name: 'model',
    label: text('collections.model'),
    cell: ({ index, target_index: target }) => (
      <>
        <code>{index.embedding_model}</code>
        {target !== null && <div class="status live small">{text('collections.reindexing')}</div>}
      </>
    ),
  },
  {
    name: 'owner',
    label: text('files.owner'),
    cell: ({ owner: { id, name } }) => name ?? id,
  },
  {
    name: 'role',
    label: text('shares.role'),
    cell: ({ my_role: role }) =>
      text(role === 'owner' ? 'collections.owner' : `shares.role.${role}`),
  },
]

function Counts({
  counts: { total, completed, in_progress: busy, failed },
}: {
  counts: Collection['file_counts']
}) {
  return (
    <div>
      {text('collections.searchable', {
        count: format.number(completed),
        total: format.number(total),
      })}
      {busy > 0 && (
        <div class="small">
          <span class="status live">
            {text('collections.in_progress', { count: format.number(busy) })}
          </span>
        </div>
      )}
      {failed > 0 && (
        <div class="small">
          <span class="status bad">
            {text('collections.failed', { count: format.number(failed) })}
          </span>
        </div>
      )}
    </div>
  )
}
