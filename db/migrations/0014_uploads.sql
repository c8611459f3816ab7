CREATE TABLE "upload" (
	"id" uuid PRIMARY KEY NOT NULL,
	"owner_id" uuid NOT NULL,
	"status" text NOT NULL,
	"filename" text NOT NULL,
	"purpose" text NOT NULL,
	"bytes" bigint NOT NULL,
	"file_lifetime_s" integer,
	"file_id" uuid,
	"parts_digest" text,
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	CONSTRAINT "upload_status" CHECK ("upload"."status" in ('pending', 'completed', 'cancelled'))
);
--> statement-breakpoint
CREATE TABLE "upload_part" (
	"id" uuid PRIMARY KEY NOT NULL,
	"upload_id" uuid NOT NULL,
	"sha256" text NOT NULL,
	"bytes" bigint NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "upload_part" ADD CONSTRAINT "upload_part_upload_id_upload_id_fk" FOREIGN KEY ("upload_id") REFERENCES "public"."upload"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "upload_owner" ON "upload" USING btree ("owner_id");--> statement-breakpoint
CREATE INDEX "upload_expires_at" ON "upload" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "upload_part_upload" ON "upload_part" USING btree ("upload_id");--> statement-breakpoint
CREATE INDEX "upload_part_sha256" ON "upload_part" USING btree ("sha256");