BEGIN TRANSACTION;
CREATE TABLE dptally_accounts (
	dataset TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	caps TEXT, 
	amounts TEXT NOT NULL, 
	cap BIGINT, 
	spent BIGINT NOT NULL, 
	failure_cap BIGINT, 
	failure_spent BIGINT NOT NULL, 
	PRIMARY KEY (dataset, holder), 
	CONSTRAINT dptally_within_cap CHECK (spent >= 0 AND (cap IS NULL OR spent <= cap)), 
	CONSTRAINT dptally_within_failure CHECK (failure_spent >= 0 AND (failure_cap IS NULL OR failure_spent <= failure_cap)), 
	CONSTRAINT dptally_dataset_capped CHECK (holder <> '' OR cap IS NOT NULL), 
	FOREIGN KEY(dataset) REFERENCES dptally_datasets (name)
)
 WITHOUT ROWID

;
INSERT INTO "dptally_accounts" VALUES('d','','["100000000000099999","0"]','["7500000000000000","0"]',100000000000099999,7500000000000000,0,0);
INSERT INTO "dptally_accounts" VALUES('d','ann','["50000000000049999","0"]','["5000000000000000","0"]',50000000000049999,5000000000000000,0,0);
INSERT INTO "dptally_accounts" VALUES('d','b"o\b',NULL,'["1250000000000000","0"]',NULL,1250000000000000,NULL,0);
INSERT INTO "dptally_accounts" VALUES('d','bob',NULL,'["2500000000000000","0"]',NULL,2500000000000000,NULL,0);
INSERT INTO "dptally_accounts" VALUES('unused','','["100000000000099999","0"]','["0","0"]',100000000000099999,0,0,0);
CREATE TABLE dptally_datasets (
	name TEXT NOT NULL, 
	terms TEXT NOT NULL, 
	length BIGINT NOT NULL, 
	head TEXT NOT NULL, 
	PRIMARY KEY (name), 
	CONSTRAINT dptally_length CHECK (length >= 0)
)
 WITHOUT ROWID

;
INSERT INTO "dptally_datasets" VALUES('','{}',2,'3a95ca1051651087a6f3c0c04f23c9aad93594f8e7d18aeea73fce2aae05392d');
INSERT INTO "dptally_datasets" VALUES('d','{"about":"","adjacency":"add-remove","allowance":"1e-12","cap":["100000000000099999","0"],"delta":"1e-09","digits":16,"failure_digits":0,"kind":"pure","orders":[],"parameters":{"epsilon":"10.0"}}',6,'09aeb71a8cc6a81ad4c421eb16e7213f948ee2c4480d366be6aa92fdf1b7ab7c');
INSERT INTO "dptally_datasets" VALUES('unused','{"about":"","adjacency":"add-remove","allowance":"1e-12","cap":["100000000000099999","0"],"delta":null,"digits":17,"failure_digits":0,"kind":"zcdp","orders":[],"parameters":{"rho":"1.0"}}',0,'68a4565357bfecd90ff7f0b93950d74964a192d4f85dae18b3cb63a53ba5d01d');
CREATE TABLE dptally_entries (
	dataset TEXT NOT NULL, 
	seq BIGINT NOT NULL, 
	type TEXT NOT NULL, 
	"key" TEXT, 
	settles BIGINT, 
	body TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (dataset, seq), 
	CONSTRAINT dptally_seq CHECK (seq >= 1), 
	CONSTRAINT dptally_type CHECK (type IN ('register', 'limit', 'spend', 'settle', 'migrate')), 
	CONSTRAINT dptally_keyed CHECK ((type = 'spend') = (key IS NOT NULL)), 
	CONSTRAINT dptally_settles CHECK ((type = 'settle') = (settles IS NOT NULL)), 
	CONSTRAINT dptally_one_charge_per_key UNIQUE (dataset, "key"), 
	CONSTRAINT dptally_one_settlement UNIQUE (dataset, settles), 
	FOREIGN KEY(dataset) REFERENCES dptally_datasets (name)
)
 WITHOUT ROWID

;
INSERT INTO "dptally_entries" VALUES('',1,'register',NULL,NULL,'{"at":"2026-11-16T16:17:39.887639Z","name":"d","seq":1,"terms":"{\"about\":\"\",\"adjacency\":\"add-remove\",\"allowance\":\"1e-12\",\"cap\":[\"100000000000099999\",\"0\"],\"delta\":\"1e-09\",\"digits\":16,\"failure_digits\":0,\"kind\":\"pure\",\"orders\":[],\"parameters\":{\"epsilon\":\"10.0\"}}","type":"register"}','29a7b0dcf8f08d199d8b408925ccb7cb4c3848a623cb1484329b3aa343113fb5');
INSERT INTO "dptally_entries" VALUES('',2,'register',NULL,NULL,'{"at":"2026-11-16T16:17:39.926406Z","name":"unused","seq":2,"terms":"{\"about\":\"\",\"adjacency\":\"add-remove\",\"allowance\":\"1e-12\",\"cap\":[\"100000000000099999\",\"0\"],\"delta\":null,\"digits\":17,\"failure_digits\":0,\"kind\":\"zcdp\",\"orders\":[],\"parameters\":{\"rho\":\"1.0\"}}","type":"register"}','3a95ca1051651087a6f3c0c04f23c9aad93594f8e7d18aeea73fce2aae05392d');
INSERT INTO "dptally_entries" VALUES('d',1,'limit',NULL,NULL,'{"at":"2026-11-16T16:17:39.909731Z","cap":["50000000000049999","0"],"dataset":"d","holder":"ann","seq":1,"type":"limit"}','a8280f890fe15864f3501b88d644aed8788ef0c609f3aa1f6aac39417e98c31e');
INSERT INTO "dptally_entries" VALUES('d',2,'spend','k:k1',NULL,'{"at":"2026-11-16T16:17:39.954009Z","by":"ann","call":"83d61d3ad39d19f2","cost":["5000000000000000","0"],"dataset":"d","expires":null,"key":"k1","labels":[],"part":"","partition":"","plan":"{\"mechanism\":{\"epsilon\":0.5,\"name\":\"pure_dp\"},\"schema\":1}","seq":2,"type":"spend","why":"a count"}','d8270fbd197665bac5927cbbe1c6b9f4f7bf2a34e1fc3d71cd8d1875ae06d889');
INSERT INTO "dptally_entries" VALUES('d',3,'settle',NULL,2,'{"at":"2026-11-16T16:17:39.973365Z","dataset":"d","of":2,"seq":3,"state":"released","type":"settle","value":{"count":4}}','ec15cf02332ae8d7c776ac6e7dd65a447699281c00a0ce2e0fb908a0975b0c0e');
INSERT INTO "dptally_entries" VALUES('d',4,'spend','c:4759c336053e3933',NULL,'{"at":"2026-11-16T16:17:40.000468Z","by":"bob","call":"4759c336053e3933","cost":["2500000000000000","0"],"dataset":"d","expires":null,"key":null,"labels":[],"part":"A","partition":"ward","plan":"{\"mechanism\":{\"name\":\"laplace\",\"scale\":4.0,\"sensitivity\":1.0},\"schema\":1}","seq":4,"type":"spend","why":""}','0cc3b140f9bccef6550b53dc3acb69a8f9b4f316a9cd5c1c58244479af3f6a38');
INSERT INTO "dptally_entries" VALUES('d',5,'spend','c:06fa069944b6d1c8',NULL,'{"at":"2026-11-16T16:17:40.018694Z","by":"b\"o\\b","call":"06fa069944b6d1c8","cost":["1250000000000000","0"],"dataset":"d","expires":null,"key":null,"labels":[],"part":"B","partition":"ward","plan":"{\"mechanism\":{\"name\":\"laplace\",\"scale\":8.0,\"sensitivity\":1.0},\"schema\":1}","seq":5,"type":"spend","why":""}','c6dcba6861eb3a230854012dc4af82056d98145cbbce89881a46619b42dd45aa');
INSERT INTO "dptally_entries" VALUES('d',6,'settle',NULL,5,'{"at":"2026-11-16T16:17:40.032863Z","dataset":"d","of":5,"seq":6,"state":"released","type":"settle"}','09aeb71a8cc6a81ad4c421eb16e7213f948ee2c4480d366be6aa92fdf1b7ab7c');
CREATE TABLE dptally_meta (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
)
 WITHOUT ROWID

;
INSERT INTO "dptally_meta" VALUES('ledger','11473d403c6fe9c33039b5c4d2b29625');
INSERT INTO "dptally_meta" VALUES('schema','1');
CREATE TABLE dptally_slots (
	dataset TEXT NOT NULL, 
	holder TEXT NOT NULL, 
	partition TEXT NOT NULL, 
	part TEXT NOT NULL, 
	amounts TEXT NOT NULL, 
	PRIMARY KEY (dataset, holder, partition, part), 
	FOREIGN KEY(dataset) REFERENCES dptally_datasets (name)
)
 WITHOUT ROWID

;
INSERT INTO "dptally_slots" VALUES('d','','ward','','["2500000000000000","0"]');
INSERT INTO "dptally_slots" VALUES('d','','ward','A','["2500000000000000","0"]');
INSERT INTO "dptally_slots" VALUES('d','','ward','B','["1250000000000000","0"]');
INSERT INTO "dptally_slots" VALUES('d','b"o\b','ward','','["1250000000000000","0"]');
INSERT INTO "dptally_slots" VALUES('d','b"o\b','ward','B','["1250000000000000","0"]');
INSERT INTO "dptally_slots" VALUES('d','bob','ward','','["2500000000000000","0"]');
INSERT INTO "dptally_slots" VALUES('d','bob','ward','A','["2500000000000000","0"]');
COMMIT;
