import { useMemo, useState } from 'preact/hooks'
import { may } from '../../session/session.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { Segments } from '../../ui/tabs.tsx'
import { KeyList } from './key-list.tsx'
import { ownKeys } from './key-source.ts'

type Owner = 'me' | 'all'

export function KeysPage() {
  const [owner, setOwner] = useState<Owner>('me')
  const [isCreating, setCreating] = useState(false)
  const source = useMemo(() => ownKeys(owner), [owner])
  return (
    <Page
      title={text('keys.title')}
      about={text('keys.about')}
      actions={
        <>
          {may('can_manage_groups') && (
            <Segments
              label={text('keys.owner')}
              choices={[
                { name: 'me' as Owner, label: text('keys.mine') },
                { name: 'all' as Owner, label: text('keys.all') },
              ]}
              selected={owner}
              onSelect={setOwner}
            />
          )}
          <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
            {text('keys.create')}
          </Button>
        </>
      }
    >
      <KeyList source={source} isCreating={isCreating} onCreating={setCreating} />
    </Page>
  )
}
