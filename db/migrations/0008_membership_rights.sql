CREATE TABLE "collection_exclusion" (
	"collection_id" uuid NOT NULL,
	"file_id" uuid NOT NULL,
	"excluded_by" uuid NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "collection_exclusion_collection_id_file_id_pk" PRIMARY KEY("collection_id","file_id")
);
--> statement-breakpoint
ALTER TABLE "collection" ADD COLUMN "folder_shared_by" uuid;--> statement-breakpoint
ALTER TABLE "collection_file" ADD COLUMN "shared_by" uuid;--> statement-breakpoint
ALTER TABLE "collection_exclusion" ADD CONSTRAINT "collection_exclusion_collection_id_collection_id_fk" FOREIGN KEY ("collection_id") REFERENCES "public"."collection"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "collection_exclusion" ADD CONSTRAINT "collection_exclusion_file_id_node_id_fk" FOREIGN KEY ("file_id") REFERENCES "public"."node"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "collection_exclusion_file" ON "collection_exclusion" USING btree ("file_id");--> statement-breakpoint
-- A collection of access mode `collection` opens a file to everyone who sees the collection. The
-- membership does so while the user who shared the file in this way may still share it: as its owner,
-- or as a manager of it who is not disabled. Nothing is stored about that: each query evaluates it.
create function groups_of(member uuid) returns text[] language sql stable as $$
  select coalesce(array_agg(distinct group_name), '{}') from user_group where user_id = member
$$;
--> statement-breakpoint
create function is_disabled(member uuid) returns boolean language sql stable as $$
  select exists (select 1 from app_user where id = member and disabled_at is not null)
$$;
--> statement-breakpoint
-- Whether `sharer` may share a live node. For one node; `opened_files` evaluates a whole collection.
create function may_share_node(asked uuid, sharer uuid) returns boolean language sql stable as $$
  select exists (
    select 1 from node
    where node.id = asked and node.trashed_at is null and (
      node.owner_id = sharer
      or (not is_disabled(sharer) and coalesce(node_role(asked, sharer, groups_of(sharer)), 0) >= 3)))
$$;
--> statement-breakpoint
-- Every live node on which a user holds at least `role_min` by a share, directly or through a folder.
-- `offset 0` keeps one index lookup per node, whatever the planner estimates.
create function node_grants_from(caller uuid, caller_groups text[], role_min smallint)
returns table (node_id uuid, role smallint) language sql stable as $$
  with recursive direct (id, kind, role) as (
    select node.id, node.kind, share.role
    from share
    join node on node.id = share.resource_id
    where share.resource_type = 'node' and share.role >= role_min and node.trashed_at is null
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
create or replace function node_grants(caller uuid, caller_groups text[])
returns table (node_id uuid, role smallint) language sql stable as $$
  select node_id, role from node_grants_from(caller, caller_groups, 1::smallint)
$$;
--> statement-breakpoint
-- The live files that a collection of access mode `collection` opens at this moment. The shares of
-- each sharer are walked once; owners who added their own files cost nothing.
create function opened_files(asked uuid) returns table (file_id uuid) language sql stable as $$
  with member as materialized (
    select held.file_id, coalesce(held.shared_by, held.added_by) as sharer, node.owner_id
    from collection_file held
    join node on node.id = held.file_id and node.trashed_at is null
    where held.collection_id = asked
  ),
  granted as materialized (
    select sharer.id as sharer, reach.node_id
    from (select distinct member.sharer as id from member where member.sharer <> member.owner_id) sharer
    cross join lateral node_grants_from(sharer.id, groups_of(sharer.id), 3::smallint) reach
    where not is_disabled(sharer.id)
  )
  select member.file_id from member where member.sharer = member.owner_id
  union all
  select member.file_id
  from member
  join granted on granted.sharer = member.sharer and granted.node_id = member.file_id
  where member.sharer <> member.owner_id
$$;
--> statement-breakpoint
-- Collections that were opened after their files had been added name no sharer yet. Their owner is the
-- one who shares what they may share and the user who added it may not.
update collection_file member set shared_by = collection.owner_id
from collection
where collection.id = member.collection_id and collection.access_mode = 'collection'
  and not may_share_node(member.file_id, member.added_by)
  and may_share_node(member.file_id, collection.owner_id);
