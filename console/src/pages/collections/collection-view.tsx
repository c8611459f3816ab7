import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { Collection } from '../../api/generated/types.ts'
import { may } from '../../session/session.ts'
import { href, navigate, place, setQuery } from '../../shell/router.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { confirm } from '../../ui/confirm.tsx'
import { Fault } from '../../ui/notice.tsx'
import { Page } from '../../ui/page.tsx'
import { useQuery } from '../../ui/query.ts'
import { Tabs } from '../../ui/tabs.tsx'
import { announce, announceFault } from '../../ui/toasts.tsx'
import { isAtLeast } from '../files/nodes.ts'
import { ShareList } from '../files/share-list.tsx'
import { collectionShares } from '../files/share-source.ts'
import { CollectionForm } from './collection-form.tsx'
import { DocumentsTab } from './documents-tab.tsx'
import { ReindexTab } from './reindex-tab.tsx'
import { SearchTab } from './search-tab.tsx'

const everyMs = 3_000

type TabName = 'search' | 'documents' | 'members' | 'index'

/** One collection: search, documents, members, index. */
export function CollectionView({ id }: { id: string }) {
  const path = { name: id }
  const query = useQuery((signal) => call('GET /v1/collections/{name}', { path, signal }), id, {
    everyMs: ({ file_counts: { in_progress: busy } }) => (busy > 0 ? everyMs : null),
  })
  const [isEditing, setEditing] = useState(false)
  const collection = query.data
  const title = collection?.name ?? text('collections.title')
  const back = (
    <a class="button quiet" href={href('/collections')}>
      {text('collections.all')}
    </a>
  )
  if (collection === undefined) {
    return (
      <Page title={title} actions={back}>
        {query.error !== undefined && <Fault error={query.error} onRetry={query.reload} />}
      </Page>
    )
  }
  return (
    <Page
      title={title}
      about={
        collection.description ??
        text('collections.owned_by', { name: collection.owner.name ?? collection.owner.id })
      }
      actions={
        <>
          {back}
          {isAtLeast(collection.my_role, 'manager') && (
            <Button icon="edit" onClick={() => setEditing(true)}>
              {text('action.edit')}
            </Button>
          )}
          {collection.my_role === 'owner' && (
            <Button kind="danger" icon="trash" onClick={() => void remove(collection)}>
              {text('action.delete')}
            </Button>
          )}
        </>
      }
    >
      <CollectionTabs collection={collection} onChange={query.reload} />
      {isEditing && (
        <CollectionForm
          collection={collection}
          onSaved={() => {
            setEditing(false)
            query.reload()
          }}
          onClose={() => setEditing(false)}
        />
      )}
    </Page>
  )
}

function CollectionTabs({
  collection,
  onChange,
}: {
  collection: Collection
  onChange: () => void
}) {
  const { total } = collection.file_counts
  const names: readonly TabName[] = [
    'search',
    'documents',
    ...(isAtLeast(collection.my_role, 'manager') ? (['members'] as const) : []),
    ...(may('can_edit_config') ? (['index'] as const) : []),
  ]
  // An empty collection needs documents first; it stays there when they come.
  const [initial] = useState<TabName>(total === 0 ? 'documents' : 'search')
  const selected = names.find((name) => name === place.value.query.get('tab')) ?? initial
  return (
    <Tabs
      label={collection.name}
      tabs={names.map((name) => ({
        name,
        label: text(`collections.tab.${name}`, { count: total }),
      }))}
      selected={selected}
      onSelect={(name) => setQuery('tab', name)}
    >
      <div class="tab-body">
        {selected === 'search' && <SearchTab collection={collection} />}
        {selected === 'documents' && <DocumentsTab collection={collection} onChange={onChange} />}
        {selected === 'members' && <ShareList source={collectionShares(collection)} />}
        {selected === 'index' && <ReindexTab collection={collection} onChange={onChange} />}
      </div>
    </Tabs>
  )
}

async function remove({ id, name }: Collection): Promise<void> {
  const isSure = await confirm({
    title: text('collections.delete_title', { name }),
    consequence: text('collections.delete_hint'),
    action: text('action.delete'),
    isDangerous: true,
  })
  if (!isSure) return
  try {
    await call('DELETE /v1/collections/{name}', { path: { name: id } })
    announce(text('collections.deleted', { name }))
    navigate('/collections')
  } catch (error) {
    announceFault(error)
  }
}
