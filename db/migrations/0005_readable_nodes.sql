-- One folder with very many children would let the planner think that all have so many, and look
-- through the whole table for those of each.
alter table node alter column parent_id set (n_distinct = -0.1);
--> statement-breakpoint
-- Who may do what with which node: the one place that says it. Lists, searches, downloads,
-- retrieval and agents all ask these functions. 1 viewer, 2 editor, 3 manager, 4 owner.
-- A right on a folder holds for all that is in it; what is in the trash is nobody's to read.
create function is_granted_to(principal_type text, principal_id text, caller uuid, caller_groups text[])
returns boolean language sql immutable parallel safe as $$
  -- Such that the planner can put it in place of the call, and use the index of the shares.
  select principal_type = 'everyone'
    or (principal_type = 'user' and principal_id = caller::text)
    or (principal_type = 'group' and principal_id = any (caller_groups))
$$;
--> statement-breakpoint
-- Every live node that was given to the caller, by itself or with a folder above it. Here and below,
-- `offset 0` keeps it a question for each node, which an index answers, whatever the planner thinks.
create function node_grants(caller uuid, caller_groups text[])
returns table (node_id uuid, role smallint) language sql stable as $$
  with recursive direct (id, kind, role) as (
    select node.id, node.kind, share.role
    from share
    join node on node.id = share.resource_id
    where share.resource_type = 'node' and node.trashed_at is null
      and is_granted_to(share.principal_type, share.principal_id, caller, caller_groups)
  ),
  folder (id, role) as (
    select direct.id, direct.role from direct where direct.kind = 'folder'
    union
    select child.id, folder.role
    from folder
    cross join lateral (
      select node.id
      from node
      where node.parent_id = folder.id and node.kind = 'folder' and node.trashed_at is null
      offset 0
    ) child
  )
  select reach.id, max(reach.role)::smallint
  from (
    select direct.id, direct.role from direct
    union all
    select child.id, folder.role
    from folder
    join node child on child.parent_id = folder.id
    where child.trashed_at is null
  ) reach
  group by reach.id
$$;
--> statement-breakpoint
-- Every live node that the caller may read, and their highest role on it.
create function node_roles(caller uuid, caller_groups text[])
returns table (node_id uuid, role smallint) language sql stable as $$
  select node.id, 4::smallint
  from node
  where node.owner_id = caller and node.trashed_at is null
  union all
  select granted.node_id, granted.role
  from node_grants(caller, caller_groups) granted
  join node on node.id = granted.node_id
  where node.owner_id <> caller
$$;
--> statement-breakpoint
-- The same for one node, without walking down the trees: null where the caller may not read it.
create function node_role(asked uuid, caller uuid, caller_groups text[])
returns smallint language sql stable as $$
  with recursive up (id, parent_id, owner_id) as (
    select node.id, node.parent_id, node.owner_id
    from node
    where node.id = asked and node.trashed_at is null
    union all
    select parent.id, parent.parent_id, parent.owner_id
    from up
    cross join lateral (
      select node.id, node.parent_id, node.owner_id from node where node.id = up.parent_id offset 0
    ) parent
  )
  select max(held.role)::smallint
  from (
    select 4 as role from up where up.id = asked and up.owner_id = caller
    union all
    select given.role
    from up
    cross join lateral (
      select share.role
      from share
      where share.resource_type = 'node' and share.resource_id = up.id
        and is_granted_to(share.principal_type, share.principal_id, caller, caller_groups)
      offset 0
    ) given
  ) held
$$;
--> statement-breakpoint
-- Whether anything was given to anybody, on a node or on a folder above it.
create function is_node_shared(asked uuid) returns boolean language sql stable as $$
  with recursive up (id, parent_id) as (
    select node.id, node.parent_id from node where node.id = asked
    union all
    select parent.id, parent.parent_id
    from up
    cross join lateral (
      select node.id, node.parent_id from node where node.id = up.parent_id offset 0
    ) parent
  )
  select exists (
    select 1
    from up
    cross join lateral (
      select 1 from share where share.resource_type = 'node' and share.resource_id = up.id offset 0
    ) given
  )
$$;
--> statement-breakpoint
-- What was given on something goes with it.
create function forget_shares() returns trigger language plpgsql as $$
begin
  delete from share where resource_type = tg_argv[0] and resource_id = old.id;
  return null;
end
$$;
--> statement-breakpoint
create trigger forget_shares after delete on node
for each row execute function forget_shares('node');
--> statement-breakpoint
create trigger forget_shares after delete on collection
for each row execute function forget_shares('collection');
--> statement-breakpoint
-- How far each file of a collection has come: it is ready once one of the indexes that its
-- collection is searched in has it. `failed` and `skipped` are told when nothing is under way.
create view collection_file_state as
select
  member.collection_id,
  member.file_id,
  case
    when bool_or(progress.state = 'done') then 'done'
    when bool_or(progress.state = 'pending') then 'pending'
    when bool_or(progress.state = 'failed') then 'failed'
    when bool_or(progress.state = 'skipped') then 'skipped'
    else 'pending'
  end as state,
  max(progress.stage) filter (where progress.state = 'pending') as stage,
  max(progress.error_code) as error_code,
  max(progress.error_message) as error_message,
  coalesce(max(progress.chunks) filter (where progress.state = 'done'), 0) as chunks
from collection_file member
join collection on collection.id = member.collection_id
left join file_index progress
  on progress.file_id = member.file_id
  and progress.index_id in (collection.index_id, collection.target_index_id)
group by member.collection_id, member.file_id;
